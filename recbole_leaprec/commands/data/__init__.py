"""Commands that make datasets and look at them: `leaprec data <command>`."""
