package fakemodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Scene is what a stand-in plays after one prompt: a turn for each request,
// and the text "done" after the last one.
type Scene struct {
	// Prompt is a text that the messages of the user contain. No other scene
	// has it, and no other message of a session contains it.
	Prompt string
	// Turns are what the model says. A tool of OpenAI can have its namespace
	// before a slash. Arguments can contain "{{PATTERN}}", which is replaced by
	// what the pattern's group finds in the results so far, last first.
	Turns []Turn
}

// Exchange is one call of a scene, and what the agent sent back for it.
type Exchange struct {
	Prompt, Tool, Args, ID string
	Answered               bool
	// Result is the text of the result, exactly as the model received it.
	Result string
	// Failed reports whether the result is marked as an error. Formats without
	// such a mark leave it false.
	Failed bool
}

// StandIn plays scenes to whole agents, over HTTP, in the streaming formats of
// Anthropic (/v1/messages), OpenAI (/v1/responses, /v1/chat/completions) and
// Gemini (:generateContent, :streamGenerateContent). In contrast to a Model,
// it does not check requests. It is safe for concurrent use.
type StandIn struct {
	mu        sync.Mutex // never held across a wait
	scenes    []Scene
	exchanges []*Exchange
	requests  []Request
}

// Request is one request that a stand-in received.
type Request struct {
	Path string
	Body json.RawMessage
}

// NewStandIn returns a stand-in for some scenes.
func NewStandIn(scenes ...Scene) *StandIn { return &StandIn{scenes: scenes} }

// Add adds a scene.
func (s *StandIn) Add(scene Scene) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scenes = append(s.scenes, scene)
}

// Exchanges returns the calls that were sent, in order.
func (s *StandIn) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Exchange, len(s.exchanges))
	for i, e := range s.exchanges {
		all[i] = *e
	}
	return all
}

// Requests returns all requests, also those outside the scenes.
func (s *StandIn) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// incoming is what a stand-in reads of a request: its parts in order.
type incoming struct {
	model string
	tools bool // it offers tools, which a request for a title or a summary does not
	parts []part
}

// part is a text of the user, or the result of a call.
type part struct {
	text   string
	callID string // "": a text of the user
	failed bool
}

// dialect is the format of one API.
type dialect struct {
	parse func(body []byte) (incoming, error)
	// say writes a turn. n is unique.
	say func(w *reply, t Turn, n int)
}

func dialectOf(path string) (d dialect, found bool) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return dialect{parseAnthropic, sayAnthropic}, true
	case strings.HasSuffix(path, "/responses"):
		return dialect{parseResponses, sayResponses}, true
	case strings.HasSuffix(path, "/chat/completions"):
		return dialect{parseChat, sayChat}, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return dialect{parseGemini, sayGemini}, true
	default:
		return dialect{}, false
	}
}

// ServeHTTP answers one request.
func (s *StandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method + " " + r.URL.Path, body})
	n := len(s.requests)
	s.mu.Unlock()
	d, found := dialectOf(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/count_tokens"), strings.HasSuffix(r.URL.Path, ":countTokens"):
		_, _ = io.WriteString(w, `{"input_tokens":10,"totalTokens":10}`)
		return
	case !found:
		http.Error(w, `{"error":{"message":"the stand-in does not serve this path"}}`, http.StatusNotFound)
		return
	}
	h, err := d.parse(body)
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, err), http.StatusBadRequest)
		return
	}
	out := &reply{to: w, model: h.model, stream: streams(r, body)}
	t := s.next(h)
	if t.Before != nil {
		t.Before()
	}
	d.say(out, t, n)
}

func streams(r *http.Request, body []byte) bool {
	var asked struct{ Stream bool }
	_ = json.Unmarshal(body, &asked)
	return asked.Stream || strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
}

var ownID = regexp.MustCompile(`_s([0-9]+)_t([0-9]+)_c([0-9]+)$`)

// next notes the results of a request, and returns the turn that follows.
func (s *StandIn) next(h incoming) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, turn := -1, 0
	for _, p := range h.parts {
		if p.callID == "" {
			for i, scene := range s.scenes {
				if strings.Contains(p.text, scene.Prompt) {
					at, turn = i, 0
				}
			}
			continue
		}
		s.note(p)
		if m := ownID.FindStringSubmatch(p.callID); m != nil && m[1] == strconv.Itoa(at+1) {
			t, _ := strconv.Atoi(m[2])
			turn = max(turn, t)
		}
	}
	if !h.tools || at < 0 || turn >= len(s.scenes[at].Turns) {
		return Turn{Text: "done"}
	}
	return s.play(at, turn)
}

// note keeps the first result of a call.
func (s *StandIn) note(p part) {
	for _, e := range s.exchanges {
		if e.ID == p.callID && !e.Answered {
			e.Answered, e.Result, e.Failed = true, p.text, p.failed
		}
	}
}

func (s *StandIn) play(at, turn int) Turn {
	t := s.scenes[at].Turns[turn]
	t.Calls = append([]Call{}, t.Calls...)
	for i := range t.Calls {
		c := &t.Calls[i]
		c.ID = fmt.Sprintf("toolu_s%d_t%d_c%d", at+1, turn+1, i+1)
		c.Args = reference.ReplaceAllStringFunc(cmp.Or(c.Args, "{}"), s.resolve)
		if known := s.exchange(c.ID); known == nil { // a repeated request gets the same turn
			s.exchanges = append(s.exchanges, &Exchange{Prompt: s.scenes[at].Prompt, Tool: c.Tool, Args: c.Args, ID: c.ID})
		}
	}
	return t
}

// reference is a pattern in the place of a number or a text.
var reference = regexp.MustCompile(`"?\{\{.*?\}\}"?`)

func (s *StandIn) resolve(ref string) string {
	inner := strings.Trim(ref, `"`)
	find, err := regexp.Compile(inner[2 : len(inner)-2])
	if err != nil {
		return ref
	}
	for i := len(s.exchanges) - 1; i >= 0; i-- {
		m := find.FindStringSubmatch(s.exchanges[i].Result)
		if len(m) < 2 {
			continue
		}
		if _, err := strconv.Atoi(m[1]); err == nil {
			return m[1]
		}
		return quote(m[1])
	}
	return ref
}

func (s *StandIn) exchange(id string) *Exchange {
	for _, e := range s.exchanges {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// reply is a response, in events or as a whole.
type reply struct {
	to     http.ResponseWriter
	model  string
	stream bool
}

// event sends one server-sent event. An empty name leaves the name out.
func (r *reply) event(name, data string) {
	r.to.Header().Set("Content-Type", "text/event-stream")
	if name != "" {
		name = "event: " + name + "\n"
	}
	_, _ = io.WriteString(r.to, name+"data: "+data+"\n\n")
	if f, ok := r.to.(http.Flusher); ok {
		f.Flush()
	}
}

// whole sends the response as one JSON value.
func (r *reply) whole(data string) {
	r.to.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(r.to, data)
}

// texts joins the texts of a content, which is a text or a list of blocks.
func texts(content json.RawMessage) string {
	if s, err := text(content); err == nil {
		return s
	}
	var blocks []struct {
		Text      string
		Encrypted string `json:"encrypted_content"` // to a sub-agent; a stand-in encrypts nothing
	}
	_ = json.Unmarshal(content, &blocks)
	var all []string
	for _, b := range blocks {
		all = append(all, b.Text+b.Encrypted)
	}
	return strings.Join(all, "\n")
}
