"""DistributedDataParallel with a codec: the class, its communication hook, and the sizes of its buckets."""
