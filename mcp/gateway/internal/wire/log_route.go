package wire

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// relayLog routes a log message of a server. If its call is unknown, the message
// goes to the only session with in-flight calls, or else is dropped.
func (f *InFlightCalls) relayLog(of *InFlightCall, params json.RawMessage) {
	if of == nil {
		of = f.ofOneSession()
	}
	if of != nil {
		of.logs.add(params)
	}
}

// ofOneSession returns the first in-flight call if all belong to one session.
func (f *InFlightCalls) ofOneSession() (first *InFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return nil
	}
	for _, one := range f.all {
		switch {
		case one.logs.log.Session == "" || first != nil && one.logs.log.Session != first.logs.log.Session:
			return nil
		case first == nil || one.n < first.n:
			first = one
		}
	}
	return first
}

// relayMessage takes a message if it is a log message.
func (f *InFlightCalls) relayMessage(of *InFlightCall, data []byte) {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(data, &m) == nil && m.Method == methodLog {
		f.relayLog(of, m.Params)
	}
}

func (f *InFlightCalls) relayRequest(r *jsonrpc.Request) {
	if r.Method == methodLog {
		f.relayLog(nil, r.Params)
	}
}
