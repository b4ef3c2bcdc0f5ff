package taskcorpus_test

func bankOdd() []task { return nil }
