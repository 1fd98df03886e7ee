"""The arithmetic of the paper on tensors: categories, preferences, miscalibration, losses. It knows nothing of RecBole."""
