package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	wire "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
)

// A schema can make clients repeat arguments in headers, by which proxies
// route. A proxy that routed by another value was deceived, so the server
// rejects such a request. The SDK does this only for tools that it knows, and
// it knows none of these.

const (
	headerPrefix  = "Mcp-Param-"
	headerKeyword = "x-mcp-header"
	encodedStart  = "=?base64?"
	encodedEnd    = "?="
)

// headerParams holds the headers that a schema declares for its arguments.
type headerParams struct {
	Header     string                  `json:"x-mcp-header"`
	Properties map[string]headerParams `json:"properties"`
}

// headersFit compares the headers of a call with its arguments, if the tool
// declares headers and the session sees the tool. The code that serves the
// request reports other faults.
func (s *Server) headersFit(r *http.Request, st *clientSession, body []byte) *jsonrpc.Error {
	name := r.Header.Get("Mcp-Name")
	if strings.HasPrefix(r.Header.Get("Mcp-Method"), "tasks/") {
		return taskNamed(name, body)
	}
	if r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("MCP-Protocol-Version") < stateless {
		return nil
	}
	t, err := s.called(r.Context(), st.session, name)
	if err != nil {
		return nil
	}
	schema, _ := inputSchema(t)
	if s.opts.Mirror != nil {
		if object, ok := s.opts.Mirror.UpstreamDefinition(t); ok {
			if !bytes.Contains(object, []byte(headerKeyword)) {
				return nil
			}
			var listed struct {
				InputSchema json.RawMessage `json:"inputSchema"`
			}
			_ = json.Unmarshal(object, &listed) // this server wrote it
			schema = listed.InputSchema
		}
	}
	var says headerParams
	if !bytes.Contains(schema, []byte(headerKeyword)) || json.Unmarshal(schema, &says) != nil {
		return nil
	}
	if _, shown := shownTool(r.Context(), st.session, t.Name()); !shown {
		return nil
	}
	var m struct {
		Params struct {
			Arguments jsontext.Value `json:"arguments"`
		} `json:"params"`
	}
	// A request that two readers could read in two ways, such as one with a
	// duplicate member, fits no headers.
	if err := wire.Unmarshal(body, &m); err != nil {
		return &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: "the request cannot be compared with its headers: it is not JSON that is read in one way alone"}
	}
	args, _ := canon.Parse(m.Params.Arguments, canon.DefaultLimits()) // invalid arguments count as none
	if err := says.fit(r.Header, args, ""); err != nil {
		return &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: err.Error()}
	}
	return nil
}

// taskNamed compares the header that names the task of a request with the
// request. A request without the header passes.
func taskNamed(name string, body []byte) *jsonrpc.Error {
	var m struct {
		Params struct {
			TaskID string `json:"taskId"`
		} `json:"params"`
	}
	if name == "" || wire.Unmarshal(body, &m) == nil && m.Params.TaskID == name {
		return nil
	}
	return &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: "header Mcp-Name is not the taskId of the request"}
}

func (r headerParams) fit(header http.Header, args canon.Value, path string) error {
	for name, p := range r.Properties {
		value, there := args.Get(name)
		if len(p.Properties) > 0 {
			if err := p.fit(header, value, path+name+"."); err != nil {
				return err
			}
		}
		if p.Header == "" {
			continue
		}
		said := header.Values(headerPrefix + p.Header)
		absent := !there || value.Kind() == canon.Null
		if absent && len(said) == 0 || !absent && len(said) == 1 && sameText(said[0], value) {
			continue
		}
		return fmt.Errorf("header %s%s is not argument %q of the request", headerPrefix, p.Header, path+name)
	}
	return nil
}

// sameText reports whether a header equals an argument. Values that a header
// cannot hold are in base64.
func sameText(header string, v canon.Value) bool {
	if coded, ok := strings.CutPrefix(header, encodedStart); ok {
		if coded, ok = strings.CutSuffix(coded, encodedEnd); ok {
			text, err := base64.StdEncoding.Strict().DecodeString(coded)
			if err != nil {
				return false
			}
			header = string(text)
		}
	}
	switch v.Kind() {
	case canon.String:
		text, ok := v.Any().(string)
		return ok && header == text
	case canon.Bool:
		return header == string(v.Canonical())
	case canon.Number:
		said, err := canon.Parse([]byte(header), canon.DefaultLimits())
		return err == nil && said.Kind() == canon.Number && bytes.Equal(said.Canonical(), v.Canonical())
	default:
		return false
	}
}

// mismatched responds to a request whose headers contradict it.
func mismatched(w http.ResponseWriter, body []byte, e *jsonrpc.Error) {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(body, &m) // read before
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": e}) // an error means that the client has left
}
