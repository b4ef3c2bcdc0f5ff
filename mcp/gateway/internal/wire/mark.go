package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// KeyCall is the _meta key under which the gateway notes the call of a
// client request. The gateway drops a value that the server set.
const KeyCall = "remit.dev/flight"

// asks reports whether a method is a client request for a call.
func asks(method string) bool {
	return method == MethodElicit || method == MethodSample || method == MethodRoots
}

// Methods of requests to a client.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// mark adds the call to the parameters of a client request.
func mark(params json.RawMessage, id string) (json.RawMessage, error) {
	all, err := members(params)
	if err != nil {
		return nil, errors.New("the parameters are no object")
	}
	meta, err := members(all["_meta"])
	if err != nil {
		return nil, errors.New("_meta is no object")
	}
	delete(meta, KeyCall)
	if id != "" {
		meta[KeyCall] = json.RawMessage(fmt.Sprintf("%q", id))
	}
	if all["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// members returns the members of an object. Missing or null has none.
func members(object json.RawMessage) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(object)) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	if all == nil { // null
		all = map[string]json.RawMessage{}
	}
	return all, nil
}

// markMessage is mark for a whole message. It returns other messages unchanged.
func markMessage(data []byte, id string) ([]byte, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if !bytes.Contains(data, []byte(`"method"`)) || json.Unmarshal(data, &m) != nil || !asks(m.Method) {
		return data, nil
	}
	params, err := mark(m.Params, id)
	if err != nil {
		return nil, fmt.Errorf("what the server asks: %w", err)
	}
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "method": m.Method, "params": json.RawMessage(params)})
}

// markRequest is mark for a parsed message.
func markRequest(r *jsonrpc.Request, id string) error {
	params, err := mark(r.Params, id)
	if err != nil {
		return fmt.Errorf("what the server asks: %w", err)
	}
	r.Params = params
	return nil
}
