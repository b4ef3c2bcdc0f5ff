package postgres_test

const childURL = "REMIT_POSTGRES_CHILD"

func child() {}
