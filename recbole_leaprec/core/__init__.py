"""The arithmetic of the paper on tensors: categories, preferences, miscalibration, losses. Nothing here uses RecBole."""
