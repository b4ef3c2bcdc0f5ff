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

// A schema may have a client repeat arguments in headers, for what stands between to route by. Whoever routed by one that is not
// the argument was deceived, so such a request is refused. The SDK does this for tools that it knows, which are none here.

const (
	headerPrefix  = "Mcp-Param-"
	headerKeyword = "x-mcp-header"
	encodedStart  = "=?base64?"
	encodedEnd    = "?="
)

// headerParams is what a schema says of the headers of its arguments.
type headerParams struct {
	Header     string                  `json:"x-mcp-header"`
	Properties map[string]headerParams `json:"properties"`
}

// headersFit compares the headers of a call with its arguments, where the tool wants that and the session is shown it. What is
// wrong with it otherwise is told by whoever answers it.
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
			_ = json.Unmarshal(object, &listed) // it was listed as this
			schema = listed.InputSchema
		}
	}
	var says headerParams
	if !bytes.Contains(schema, []byte(headerKeyword)) || json.Unmarshal(schema, &says) != nil {
		return nil
	}
	if _, shown := s.tools(r.Context(), st.session)[t.Name()]; !shown {
		return nil
	}
	var m struct {
		Params struct {
			Arguments jsontext.Value `json:"arguments"`
		} `json:"params"`
	}
	// What two readers would read in two ways, such as a member that is there twice, has headers that fit no reader.
	if err := wire.Unmarshal(body, &m); err != nil {
		return &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: "the request cannot be compared with its headers: it is not JSON that is read in one way alone"}
	}
	args, _ := canon.Parse(m.Params.Arguments, canon.DefaultLimits()) // what cannot be read has no arguments
	if err := says.fit(r.Header, args, ""); err != nil {
		return &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: err.Error()}
	}
	return nil
}

// taskNamed compares the header that names the task of a request with the request. One without says nothing wrong.
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

// sameText reports whether a header says what an argument does. Texts that a header cannot hold are in base64.
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

// mismatched answers a request whose headers say something else than it does.
func mismatched(w http.ResponseWriter, body []byte, e *jsonrpc.Error) {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(body, &m) // it was read before
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": e}) // a client that is gone is not told
}
