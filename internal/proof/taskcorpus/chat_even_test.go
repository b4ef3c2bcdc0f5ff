package taskcorpus_test

func chatEven() []task { return nil }
