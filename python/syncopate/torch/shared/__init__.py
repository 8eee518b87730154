"""Parts that several tasks need: a model's parameters, how ranks meet, hooks of autograd, threads, errors, and the choice of a codec."""
