package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	wire "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Most requests are calls of the newest revision that need nothing but a
// response. The SDK makes a session for each of them and reads it three times.
// This code reads it once and uses the same callTool. It leaves every request
// in another form to the SDK, whose response is authoritative: for a request
// that both can serve, the responses are equal.

// fastCall is such a request.
type fastCall struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		Meta      directMeta     `json:"_meta"`
	} `json:"params"`
}

type directMeta map[string]jsontext.Value

const methodCall = "tools/call"

// wantsMore lists the members of _meta that need the SDK: the client wants
// messages before the response.
var wantsMore = []string{"progressToken", sdk.MetaKeyLogLevel}

// serveFast responds to a plain call. It returns false if it did nothing.
func (s *Server) serveFast(w http.ResponseWriter, r *http.Request, st *clientSession, body []byte) bool {
	if r.Method != http.MethodPost || !plainHeaders(r.Header) {
		return false
	}
	var m fastCall
	// A request with a duplicate or unknown member is not plain.
	if wire.Unmarshal(body, &m, wire.RejectUnknownMembers(true)) != nil || !m.plain(r.Header) {
		return false
	}
	caps, client := st.readClientInfo(m.Params.Meta[sdk.MetaKeyClientCapabilities], m.Params.Meta[sdk.MetaKeyClientInfo])
	if _, says := m.Params.Meta[sdk.MetaKeyClientInfo]; caps == nil || client == nil && says {
		return false // the SDK reports the fault
	}
	meta, err := m.Params.Meta.remaining()
	if err != nil {
		return false
	}
	c := s.newCall(st, &sdk.CallToolRequest{
		Params: &sdk.CallToolParamsRaw{Meta: meta, Name: m.Params.Name, Arguments: json.RawMessage(m.Params.Arguments)},
		Extra:  &sdk.RequestExtra{TokenInfo: st.info(), Header: r.Header},
	})
	c.caps, c.client = caps, client
	result, err := c.serve(r.Context(), true)
	s.respond(w, m.ID, result, err)
	return true
}

// clientInfo is what a client reports about itself with each request, with the
// parsed form. It seldom changes.
type clientInfo struct {
	text   string
	caps   *sdk.ClientCapabilities // nil: invalid
	client *sdk.Implementation
}

// maxClientInfo bounds what the server remembers for each session.
const maxClientInfo = 4 << 10

// readClientInfo parses what a client reports about itself by the SDK, or
// reuses that of the last request.
func (st *clientSession) readClientInfo(caps, client jsontext.Value) (*sdk.ClientCapabilities, *sdk.Implementation) {
	said := string(caps) + " " + string(client)
	if last := st.introduction.Load(); last != nil && last.text == said {
		return last.caps, last.client
	}
	meta := sdk.Meta{}
	both := map[string]jsontext.Value{sdk.MetaKeyClientCapabilities: caps, sdk.MetaKeyClientInfo: client}
	for key, value := range both {
		var v any
		if wire.Unmarshal(value, &v) == nil {
			meta[key] = v
		}
	}
	req := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Meta: meta}}
	now := &clientInfo{text: said, caps: req.ClientCapabilities(), client: req.ClientInfo()}
	if len(said) <= maxClientInfo {
		st.introduction.Store(now)
	}
	return now.caps, now.client
}

// remaining returns the metadata except what the client reports about itself.
func (m directMeta) remaining() (sdk.Meta, error) {
	rest := make(sdk.Meta, len(m))
	for key, value := range m {
		if key == sdk.MetaKeyClientCapabilities || key == sdk.MetaKeyClientInfo {
			continue
		}
		var v any
		if err := wire.Unmarshal(value, &v); err != nil {
			return nil, err
		}
		rest[key] = v
	}
	return rest, nil
}

// plainHeaders reports whether the headers are those of a call in the newest
// revision, each once, and written as clients write them.
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

func (m *fastCall) plain(h http.Header) bool {
	if m.Version != "2.0" || m.Method != methodCall || m.Params.Name == "" || m.Params.Name != h["Mcp-Name"][0] || !plainID(m.ID) {
		return false
	}
	for _, key := range wantsMore {
		if _, ok := m.Params.Meta[key]; ok {
			return false
		}
	}
	return string(m.Params.Meta[sdk.MetaKeyProtocolVersion]) == `"`+stateless+`"`
}

// plainID reports whether an ID is a string, or a number that every program
// reads alike. The response contains it unchanged.
func plainID(id jsontext.Value) bool {
	if id.Kind() == '"' {
		return true
	}
	const exact = 15 // digits
	return id.Kind() == '0' && len(id) <= exact && !strings.ContainsAny(string(id), ".eE-")
}

// info returns the token info for the SDK.
func (st *clientSession) info() *auth.TokenInfo {
	return &auth.TokenInfo{UserID: st.session.ID(), Extra: map[string]any{tokenSession: st}}
}

// respond responds to a request.
func (s *Server) respond(w http.ResponseWriter, id jsontext.Value, result *wireResult, err error) {
	member, status := "result", http.StatusOK
	var data []byte
	if err == nil {
		s.sign(result)
		data, err = result.MarshalJSON()
	} else {
		said := wireError(err)
		member, status = "error", statusOf(said.Code)
		data, err = json.Marshal(said)
	}
	if err != nil {
		s.opts.Log.Error("an answer cannot be written", "error", err)
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(status)
	_, _ = w.Write(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"`+member+`":`), data, []byte(`}`))) // an error means that the client has left
}

// sign adds the server's name and version to a result of the newest revision.
func (s *Server) sign(o *wireResult) {
	if _, ok := o.Meta[sdk.MetaKeyServerInfo]; !ok {
		o.note(sdk.MetaKeyServerInfo, s.about)
	}
}

// wireError returns an error as the protocol writes it: with the code and data
// of a jsonrpc.Error, or with the code of the one that it wraps.
func wireError(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	switch {
	case !errors.As(err, &said):
		return &jsonrpc.Error{Message: err.Error()}
	case said.Error() == err.Error(): // err wraps no text around it
		return said
	}
	return &jsonrpc.Error{Code: said.Code, Message: err.Error()}
}

// statusOf returns the HTTP status of an error in the newest revision.
func statusOf(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, sdk.CodeUnsupportedProtocolVersion, sdk.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
