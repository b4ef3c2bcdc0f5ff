package taskcorpus_test

func bankEven() []task { return nil }
