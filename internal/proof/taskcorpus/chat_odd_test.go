package taskcorpus_test

func chatOdd() []task { return nil }
