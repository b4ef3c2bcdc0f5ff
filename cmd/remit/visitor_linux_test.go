package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// visitor is one session with what it did, which nobody else knows. It speaks one of the two ways of the protocol by itself,
// without a library that would put right what a server does wrong.
type visitor struct {
	c      *clientGroup
	n      int
	who    string
	token  string
	secret string
	kept   bool   // it speaks the revision that keeps a connection
	conn   string // its Mcp-Session-Id
	stream func() // ends its stream of what may happen; nil: it has none
	http   *http.Client
	r      *rand.Rand
	id     atomic.Int64
	files  map[string]string // its folder
	ready  valuables
}

// valuables are what others would like to have. They are there before anybody tries, and stay until all have.
type valuables struct {
	txn, call   string // open, and done in it
	asked       string // call of a letter that waits for an answer; none of a connection that is kept
	state, path string // of that
}

func newVisitor(c *clientGroup, n int, who string) *visitor {
	r := rand.New(rand.NewPCG(c.seed, uint64(n)))
	return &visitor{
		c: c, n: n, who: who, secret: fmt.Sprintf("secret-%04d-%016x", n, r.Uint64()), kept: n%2 == 1, r: r, files: map[string]string{},
		http: &http.Client{Transport: &http.Transport{}},
	}
}

func (v *visitor) session() string {
	id, _, _ := strings.Cut(v.token, ".")
	return id
}

// message is what comes back, or a question that comes before.
type message struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Result *result         `json:"result"`
	Error  *rpcError       `json:"error"`
	Params json.RawMessage `json:"params"`
	raw    string
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type result struct {
	Type    string `json:"resultType"`
	IsError bool   `json:"isError"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	State      string          `json:"requestState"`
	Meta       struct {
		Txn    string `json:"remit.dev/txn"`
		Call   string `json:"remit.dev/call"`
		Status string `json:"remit.dev/status"`
	} `json:"_meta"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

// text is what a result says; of an error of the protocol, that.
func (m message) text() string {
	switch {
	case m.Error != nil:
		return fmt.Sprint(m.Error.Code, " ", m.Error.Message)
	case m.Result == nil || len(m.Result.Content) == 0:
		return ""
	}
	return m.Result.Content[0].Text
}

// ok reports whether a call was done.
func (m message) ok() bool {
	return m.Result != nil && !m.Result.IsError && m.Result.Type != "input_required"
}

// request is what goes out.
func (v *visitor) request(method string, params map[string]any) *http.Request {
	if !v.kept {
		meta := map[string]any{}
		if given, ok := params["_meta"].(map[string]any); ok {
			meta = maps.Clone(given)
		}
		meta["io.modelcontextprotocol/protocolVersion"] = revisions[0]
		can := map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}
		if strings.HasPrefix(method, "tasks/") {
			can["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
		}
		meta["io.modelcontextprotocol/clientCapabilities"] = can
		params = maps.Clone(params)
		params["_meta"] = meta
	}
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if !strings.HasPrefix(method, "notifications/") {
		m["id"] = v.id.Add(1)
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	req := v.post(body)
	if !v.kept {
		req.Header.Set("Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			req.Header.Set("Mcp-Name", name)
		}
	}
	return req
}

func (v *visitor) post(body []byte) *http.Request {
	req, err := http.NewRequest(http.MethodPost, v.c.url, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+v.token)
	req.Header.Set("MCP-Protocol-Version", revisions[0])
	if v.kept {
		req.Header.Set("MCP-Protocol-Version", revisions[1])
		if v.conn != "" {
			req.Header.Set("Mcp-Session-Id", v.conn)
		}
	}
	return req
}

// send sends a request, and reads what comes back. Answer is what it says to questions that come before.
func (v *visitor) send(req *http.Request, answer string) (status int, m message) {
	res, err := v.http.Do(req)
	if err != nil {
		v.c.wrong("%s: no answer: %v", v.who, err)
		return 0, m
	}
	defer func() { _ = res.Body.Close() }()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		if owner, known := v.c.owners.LoadOrStore(id, v.n); known && owner != v.n {
			v.c.wrong("%s has the connection of p%04d", v.who, owner)
		}
		v.conn = id
	}
	said := ""
	if req.GetBody != nil {
		body, _ := req.GetBody()
		all, _ := io.ReadAll(body)
		said = string(all)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		all, err := io.ReadAll(res.Body)
		if err != nil {
			v.c.wrong("%s: half an answer: %v", v.who, err)
		}
		v.c.see(v, said, string(all))
		_ = json.Unmarshal(all, &m)
		m.raw = string(all)
		return res.StatusCode, m
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if data, is := strings.CutPrefix(line, "data: "); is && strings.TrimSpace(data) != "" {
			v.c.see(v, said, data)
			var one message
			if err := json.Unmarshal([]byte(data), &one); err != nil {
				v.c.wrong("%s: what is no message: %q", v.who, data)
			}
			one.raw = data
			switch {
			case one.Method != "" && one.ID != nil:
				v.reply(one, answer)
			case one.Method == "":
				m = one
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				v.c.wrong("%s: half an answer: %v", v.who, err)
			}
			return res.StatusCode, m
		}
	}
}

// reply answers a question of the server.
func (v *visitor) reply(asked message, answer string) {
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": asked.ID, "result": answerTo(answer)})
	if status, m := v.send(v.post(body), ""); status != http.StatusAccepted {
		v.c.wrong("%s: its answer to a question came to %d %s", v.who, status, m.raw)
	}
}

func answerTo(answer string) map[string]any {
	return map[string]any{"action": "accept", "content": map[string]any{"approve": answer == "yes"}}
}

// call calls a tool, as somebody who is welcome.
func (v *visitor) call(name string, args, more map[string]any) message {
	return v.ask(name, args, more, "")
}

func (v *visitor) ask(name string, args, more map[string]any, answer string) message {
	params := map[string]any{"name": name, "arguments": args}
	maps.Copy(params, more)
	v.c.count("")
	status, m := v.send(v.request("tools/call", params), answer)
	if status != http.StatusOK || m.Result == nil {
		v.c.wrong("%s: %s %v came to %d %s", v.who, name, args, status, m.raw)
		m.Result = &result{IsError: true}
	}
	return m
}

// done is call of something that must work.
func (v *visitor) done(name string, args, more map[string]any) message {
	m := v.call(name, args, more)
	if !m.ok() {
		v.c.wrong("%s: %s %v is not done: %s", v.who, name, args, m.raw)
	}
	return m
}

// arrive says hello, where that is said.
func (v *visitor) arrive() {
	if !v.kept {
		return
	}
	v.conn = ""
	v.send(v.request("initialize", map[string]any{
		"protocolVersion": revisions[1], "clientInfo": map[string]any{"name": v.who, "version": "1"}, "capabilities": map[string]any{"elicitation": map[string]any{}},
	}), "")
	v.send(v.request("notifications/initialized", map[string]any{}), "")
	if v.n%4 != 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	req := v.post(nil).WithContext(ctx)
	req.Method, req.Body, req.GetBody, req.ContentLength = http.MethodGet, nil, nil, 0
	res, err := v.http.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		v.c.wrong("%s has no stream: %v", v.who, err)
		cancel()
		return
	}
	v.stream = func() {
		cancel()
		_ = res.Body.Close()
	}
}

// leave goes away, as a client does that ends well.
func (v *visitor) leave() {
	if v.stream != nil {
		v.stream()
		v.stream = nil
	}
	if v.kept {
		req := v.post(nil)
		req.Method, req.Body, req.GetBody, req.ContentLength = http.MethodDelete, nil, nil, 0
		if status, m := v.send(req, ""); status != http.StatusNoContent {
			v.c.wrong("%s cannot leave: %d %s", v.who, status, m.raw)
		}
	}
	v.http.CloseIdleConnections()
}

func (v *visitor) list() {
	v.c.count("")
	status, m := v.send(v.request("tools/list", map[string]any{}), "")
	if status != http.StatusOK || m.Result == nil || len(m.Result.Tools) < 10 {
		v.c.wrong("%s: the tools came to %d %s", v.who, status, m.raw)
	}
}

// settleIn makes what others would like to have.
func (v *visitor) settleIn() {
	v.arrive()
	v.ready.txn = v.begin()
	v.ready.call = v.write("kept.txt", v.ready.txn).Result.Meta.Call
	if v.kept {
		return
	}
	v.ready.path = "letters/first.txt"
	m := v.call("file_write", v.readLetter(v.ready.path), nil)
	if m.Result.Type != "input_required" {
		v.c.wrong("%s was not asked: %s", v.who, m.raw)
	}
	v.ready.state, v.ready.asked = m.Result.State, m.Result.Meta.Call
}

// settleUp ends what settleIn began: nobody else has.
func (v *visitor) settleUp() {
	v.done("txn_commit", map[string]any{"txn": v.ready.txn}, nil)
	if v.kept {
		return
	}
	v.done("file_write", v.readLetter(v.ready.path), redeem(v.ready.state, "yes"))
	v.files[v.ready.path] = v.content(v.ready.path)
}

// content is what a visitor writes into a file that it writes once.
func (v *visitor) content(name string) string { return v.secret + " in " + name }

func (v *visitor) readLetter(name string) map[string]any {
	return map[string]any{"path": v.who + "/" + name, "content": v.content(name)}
}

func redeem(state, answer string) map[string]any {
	return map[string]any{"requestState": state, "inputResponses": map[string]any{"approval": answerTo(answer)}}
}

func (v *visitor) begin() string {
	var began struct{ Txn string }
	if err := json.Unmarshal(v.done("txn_begin", map[string]any{}, nil).Result.Structured, &began); err != nil {
		v.c.wrong("%s: txn_begin: %v", v.who, err)
	}
	return began.Txn
}

// write writes a file, in a transaction where one is named.
func (v *visitor) write(name, txn string) message {
	text := fmt.Sprintf("%s %d", v.secret, v.r.Uint64())
	var more map[string]any
	if txn != "" {
		more = map[string]any{"_meta": map[string]any{"remit.dev/txn": txn}}
	}
	m := v.done("file_write", map[string]any{"path": v.who + "/" + name, "content": text}, more)
	if m.ok() {
		v.files[name] = text
	}
	return m
}

// step does something, and says in how many calls.
func (v *visitor) step() int {
	name := fmt.Sprintf("f%d.txt", v.r.IntN(6))
	switch n := v.r.IntN(100); {
	case n < 30:
		v.write(name, "")
		return 1
	case n < 60:
		v.read(name)
		return 1
	case n < 64:
		v.folder()
		return 1
	case n < 68:
		v.done("txn_status", map[string]any{}, nil)
		return 1
	case n < 76:
		return v.transaction(name)
	case n < 82:
		return v.takeBack(name)
	case n < 88:
		return v.writeLetter()
	case n < 90:
		v.list()
		return 1
	case n < 91:
		v.search()
		return 1
	default:
		v.echo()
		return 1
	}
}

func (v *visitor) read(name string) {
	m := v.call("file_read", map[string]any{"path": v.who + "/" + name}, nil)
	want, there := v.files[name]
	if m.ok() != there || there && m.text() != want {
		v.c.wrong("%s reads %s as %s, want %q", v.who, name, m.raw, want)
	}
}

func (v *visitor) folder() {
	m := v.done("file_list", map[string]any{"path": v.who, "recursive": true}, nil)
	for name := range v.files {
		if !strings.Contains(m.text(), name) {
			v.c.wrong("%s does not see %s: %s", v.who, name, m.raw)
		}
	}
}

// transaction writes two files, and keeps them or reverts them.
func (v *visitor) transaction(name string) int {
	before := maps.Clone(v.files)
	txn := v.begin()
	v.write(name, txn)
	v.write("more-"+name, txn)
	if v.r.IntN(2) == 0 {
		v.done("txn_commit", map[string]any{"txn": txn}, nil)
	} else {
		v.done("txn_revert", map[string]any{"txn": txn}, nil)
		v.files = before
	}
	return 4
}

// takeBack writes a file and reverts that by the id of the call.
func (v *visitor) takeBack(name string) int {
	before := maps.Clone(v.files)
	call := v.write(name, "").Result.Meta.Call
	v.done("txn_revert", map[string]any{"call": call}, nil)
	v.files = before
	return 2
}

// writeLetter is asked about, and says yes or no.
func (v *visitor) writeLetter() int {
	name, answer := fmt.Sprintf("letters/%d.txt", v.r.Uint64()), []string{"yes", "no"}[v.r.IntN(2)]
	m := v.ask("file_write", v.readLetter(name), nil, answer)
	calls := 1
	if !v.kept {
		if m.Result.Type != "input_required" || m.Result.State == "" {
			v.c.wrong("%s was not asked: %s", v.who, m.raw)
		}
		m = v.call("file_write", v.readLetter(name), redeem(m.Result.State, answer))
		calls = 2
	}
	switch {
	case m.ok() != (answer == "yes"), !m.ok() && m.Result.Meta.Status != "denied":
		v.c.wrong("%s said %s to a letter: %s", v.who, answer, m.raw)
	case m.ok():
		v.files[name] = v.content(name)
	}
	return calls
}

// search looks through everybody's files, and finds its own.
func (v *visitor) search() {
	m := v.done("file_search", map[string]any{"pattern": "secret-", "literal": true}, nil)
	own := slices.ContainsFunc(slices.Collect(maps.Values(v.files)), func(text string) bool { return strings.Contains(text, "secret-") })
	if own && !strings.Contains(m.text(), v.who+"/") {
		v.c.wrong("%s does not find its own: %s", v.who, m.raw)
	}
}

// echo has a server behind the gateway say what it hears; without a gateway, it asks for the same call as everybody else, by an
// id that everybody uses.
func (v *visitor) echo() {
	if v.c.through == "gateway" {
		text := fmt.Sprintf("%s %d", v.secret, v.r.Uint64())
		if m := v.done("peer__echo", map[string]any{"text": text}, nil); m.text() != text {
			v.c.wrong("%s hears %s, and said %q", v.who, m.raw, text)
		}
		return
	}
	v.done("file_list", map[string]any{"path": v.who}, map[string]any{"_meta": map[string]any{"remit.dev/call-id": "the first"}})
}
