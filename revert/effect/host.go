package effect

// HostsNote is the key of the note of a call that lists the hosts that its
// programs reached through its proxy. The note is durable before the first
// connection to each of them.
const HostsNote = "remit.hosts"

// DeniedHostsNote is the key of the note of a call that lists the hosts that
// its proxy refused.
const DeniedHostsNote = "remit.denied_hosts"

// DeniedHost is one of them.
type DeniedHost struct {
	Origin string `json:"origin"` // as in Host
	Why    string `json:"why"`
}

// Host is one of them. What was sent there stays sent.
type Host struct {
	Origin      string `json:"origin"` // scheme, host and port, such as https://packages.example.com
	Connections int    `json:"connections,omitempty"`
	Sent        int64  `json:"sent,omitempty"`     // bytes; 0 until the program has ended
	Received    int64  `json:"received,omitempty"` // bytes; 0 until the program has ended
}
