package config

// ClientFeature is a client feature that a server can use during a call.
type ClientFeature string

// The client features.
const (
	Elicitation ClientFeature = "elicitation" // the user fills in a form or opens a page
	Sampling    ClientFeature = "sampling"    // the client's model responds
	Roots       ClientFeature = "roots"       // the client's folders; only if the configuration permits it
)
