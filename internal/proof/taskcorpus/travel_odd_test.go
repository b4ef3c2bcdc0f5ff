package taskcorpus_test

func travelOdd() []task { return nil }
