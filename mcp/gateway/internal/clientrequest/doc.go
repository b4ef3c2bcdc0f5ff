// Package clientrequest forwards the requests that a server sends to the client
// during a call: elicitation, sampling and roots. The configuration, the client
// and the policy must permit each.
package clientrequest
