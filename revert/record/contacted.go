package record

// ContactedHosts are the hosts that a program reached through the proxy of its
// call. The note is durable before the first connection to each of them. What
// was sent stays sent.
type ContactedHosts struct {
	Hosts []ContactedHost `json:"hosts"`
}

// ContactedHost is one of them.
type ContactedHost struct {
	Origin      string `json:"origin"` // scheme, host and port, such as https://registry.npmjs.org
	Connections int    `json:"connections,omitempty"`
	Sent        int64  `json:"sent,omitempty"`     // bytes; 0 until the program has ended
	Received    int64  `json:"received,omitempty"` // bytes; 0 until the program has ended
}

// Key returns the key of the note that holds them.
func (ContactedHosts) Key() string { return "remit.hosts" }
