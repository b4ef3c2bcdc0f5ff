package taskcorpus_test

func codeEven() []task { return nil }
