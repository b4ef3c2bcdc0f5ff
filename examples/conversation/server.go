package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/tool/wire"
)

const question = "Raise the price of tea to 4 in the menu, note it in the history, and throw the old draft away."

// script is the model's output. Its second turn contains a call that cannot
// run, and one that is denied.
func script() []fakemodel.Turn {
	return []fakemodel.Turn{
		{Text: "I look at both.", Calls: []fakemodel.Call{
			{Tool: "file_read", Args: `{"path":"menu.txt"}`}, {Tool: "file_read", Args: `{"path":"draft.txt"}`},
		}},
		{Calls: []fakemodel.Call{
			{Tool: "file_write", Args: `{"path":"menu.txt","content":"tea 4`, Other: `{"path":"menu.txt","text":"tea 4\n"}`},
			{Tool: "file_write", Args: `{"path":".git/history","content":"tea is 4 now\n"}`},
		}},
		{Calls: []fakemodel.Call{
			{Tool: "file_write", Args: `{"path":"menu.txt","content":"tea 4\n"}`},
			{Tool: "file_delete", Args: `{"path":"draft.txt"}`},
			{Tool: "file_list", Args: `{"path":"."}`},
		}},
		{Text: "Tea is 4 and the draft is gone. I may not write into the history."},
	}
}

// server is a provider on this machine.
type server struct {
	*httptest.Server
	url   string
	model *fakemodel.Model
	path  string
}

// paths are the URL paths of the providers.
var paths = map[wire.Format]string{
	wire.OpenAIChat: "/v1/chat/completions", wire.OpenAIResponses: "/v1/responses", wire.Anthropic: "/v1/messages",
	wire.Gemini: "/v1beta/models/m:generateContent", wire.Bedrock: "/model/m/converse", wire.Ollama: "/api/chat",
}

func serve(f wire.Format) (*server, error) { return serveScript(f, script()) }

func serveScript(f wire.Format, script []fakemodel.Turn) (*server, error) {
	model, err := fakemodel.New(string(f), script...)
	if err != nil {
		return nil, err
	}
	s := &server{model: model, path: paths[f]}
	s.Server = httptest.NewServer(s)
	s.url = s.URL
	return s, nil
}

// ServeHTTP answers a request, and rejects one that the provider would reject.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && (r.Method != http.MethodPost || r.URL.Path != s.path || r.Header.Get("Content-Type") != "application/json") {
		err = errors.New("no such endpoint")
	}
	var answer []byte
	if err == nil {
		answer, err = s.model.Answer(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// ask is the client: it sends the loop's request. A real client adds the
// model's name, a key, and other options.
func (s *server) ask(ctx context.Context, p agent.ModelRequest) (json.RawMessage, error) {
	body, err := s.model.Body(p.Messages, p.Tools)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+s.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, err
}

func (s *server) user(text string) json.RawMessage { return s.model.User(text) }
