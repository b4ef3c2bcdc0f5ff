package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	wire "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Most requests are calls of the newest revision that want to hear nothing but their answer. The SDK makes a session for each,
// and reads it three times; here it is read once and answered by the same callTool. What is not written in the one plain way is
// left to the SDK, whose answer is the one that counts: where both would answer, they answer alike.

// directCall is such a request.
type directCall struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		Meta      map[string]any `json:"_meta"`
	} `json:"params"`
}

const methodCall = "tools/call"

// What a request says in _meta that needs the SDK: it wants to be told something before its answer.
var wantsMore = []string{"progressToken", sdk.MetaKeyLogLevel}

// direct answers a request if it is a plain call; false: nothing was done.
func (s *Server) direct(w http.ResponseWriter, r *http.Request, st *seat, body []byte) bool {
	if !plainHeaders(r.Header) {
		return false
	}
	var m directCall
	// A member that is written twice, or that the struct does not have, makes it another kind of request.
	if wire.Unmarshal(body, &m, wire.RejectUnknownMembers(true)) != nil || !m.plain(r.Header) {
		return false
	}
	req := &sdk.CallToolRequest{
		Params: &sdk.CallToolParamsRaw{Meta: m.Params.Meta, Name: m.Params.Name, Arguments: json.RawMessage(m.Params.Arguments)},
		Extra:  &sdk.RequestExtra{TokenInfo: st.info(), Header: r.Header},
	}
	c := s.newCall(st, req)
	if _, says := m.Params.Meta[sdk.MetaKeyClientInfo]; says && c.client == nil || c.caps == nil {
		return false // the SDK says what is wrong with it
	}
	result, err := c.serve(r.Context(), true)
	s.tell(w, m.ID, result, err)
	return true
}

// plainHeaders reports whether headers are those that the newest revision has for a call, each once, and written as clients do.
func plainHeaders(h http.Header) bool {
	for _, one := range []struct{ name, value string }{
		{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}, {"Mcp-Protocol-Version", stateless}, {"Mcp-Method", methodCall},
	} {
		if values := h[one.name]; len(values) != 1 || values[0] != one.value {
			return false
		}
	}
	return len(h["Mcp-Name"]) == 1 && len(h["Mcp-Session-Id"]) == 0 && len(h["Last-Event-Id"]) == 0
}

func (m *directCall) plain(h http.Header) bool {
	if m.Version != "2.0" || m.Method != methodCall || m.Params.Name == "" || m.Params.Name != h["Mcp-Name"][0] || !plainID(m.ID) {
		return false
	}
	for _, key := range wantsMore {
		if _, ok := m.Params.Meta[key]; ok {
			return false
		}
	}
	version, ok := m.Params.Meta[sdk.MetaKeyProtocolVersion].(string)
	return ok && version == stateless
}

// plainID reports whether an id is a text, or a number that every program reads alike. It goes back as it came.
func plainID(id jsontext.Value) bool {
	if id.Kind() == '"' {
		return true
	}
	const exact = 15 // digits
	return id.Kind() == '0' && len(id) <= exact && !strings.ContainsAny(string(id), ".eE-")
}

// info is what the SDK is told of who asks.
func (st *seat) info() *auth.TokenInfo {
	return &auth.TokenInfo{UserID: st.in.ID(), Extra: map[string]any{tokenSeat: st}}
}

// tell answers a request.
func (s *Server) tell(w http.ResponseWriter, id jsontext.Value, result *object, err error) {
	answer := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  *object         `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{Version: "2.0", ID: json.RawMessage(id), Result: result}
	status := http.StatusOK
	if err != nil {
		answer.Error = wireError(err)
		status = statusOf(answer.Error.Code)
	} else {
		s.sign(result)
	}
	data, err := json.Marshal(answer)
	if err != nil {
		s.opts.Log.Error("a result cannot be written", "error", err)
		http.Error(w, "the result cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone is not told
}

// sign puts into a result of the newest revision whose it is.
func (s *Server) sign(o *object) {
	if _, ok := o.Meta[sdk.MetaKeyServerInfo]; !ok {
		o.note(sdk.MetaKeyServerInfo, s.about)
	}
}

// wireError is an error as the protocol writes it: with the code of the one that it wraps.
func wireError(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		return &jsonrpc.Error{Message: err.Error()}
	}
	if error(said) == err {
		return said
	}
	return &jsonrpc.Error{Code: said.Code, Message: err.Error()}
}

// statusOf is what HTTP says of an error of the newest revision.
func statusOf(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, sdk.CodeUnsupportedProtocolVersion, sdk.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
