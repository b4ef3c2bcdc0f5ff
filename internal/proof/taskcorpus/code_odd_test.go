package taskcorpus_test

func codeOdd() []task { return nil }
