package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// sentCall is what a client wrote down of one call that it sent.
type sentCall struct {
	Session string `json:"session"`
	ID      string `json:"id"`               // that the client gave it
	Call    string `json:"call,omitempty"`   // that the answer gave it
	Status  string `json:"status,omitempty"` // of the answer; none: there was no answer
	Why     string `json:"why,omitempty"`    // there was none
	Brief   bool   `json:"brief,omitempty"`  // the client waited only hangTimeout
	took    time.Duration
}

// loadClient calls tools of every server, one call after the other, and writes down
// what became of each. It knows nothing of the journal.
type loadClient struct {
	n       int
	url     string
	session string
	token   string
	pause   time.Duration // between two calls, on average
	r       *rand.Rand
	http    *http.Client
	notes   []sentCall
}

// loadTimeout is how long the gateway waits for a server, and loadCallTimeout how long a
// client waits for an answer, also on a machine with much other work. A client waits
// only hangTimeout for an answer of a server that it makes hang, so that call has none.
const (
	loadCallTimeout = time.Minute
	hangTimeout     = 2 * time.Second
	loadTimeout     = "4s"
)

// Each client makes at least leastCalls. Its call crashAt ends a server, and the call
// hangAt of the first client makes one hang.
const leastCalls, crashAt, hangAt = 12, 4, 8

func (c *loadClient) run(ctx context.Context) {
	for i := 0; i < leastCalls || ctx.Err() == nil; i++ {
		c.notes = append(c.notes, c.call(i))
		if c.pause > 0 {
			wait := time.Duration(c.r.Int64N(int64(2 * c.pause)))
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

func (c *loadClient) call(i int) sentCall {
	id := fmt.Sprintf("%d-%d", c.n, i)
	server := []string{"steady", "steady", "steady", "noisy", "crash", "hang"}[c.r.IntN(6)]
	name := []string{"read", "read", "write"}[c.r.IntN(3)]
	text := fmt.Sprintf("%s %x", id, c.r.Uint64())
	troubled := c.r.IntN(200) == 0
	switch {
	case i == crashAt:
		server, troubled = "crash", true
	case i == hangAt && c.n == 0:
		server, troubled = "hang", true
	}
	if troubled {
		text = "trouble " + text
	}
	params := map[string]any{
		"name": server + "__" + name, "arguments": map[string]any{"path": fmt.Sprintf("f%d", c.n), "text": text},
		"_meta": map[string]any{
			"remit.dev/call-id": id, "io.modelcontextprotocol/protocolVersion": revisions[0],
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		},
	}
	note, patience := sentCall{Session: c.session, ID: id, Brief: troubled && server == "hang"}, loadCallTimeout
	if note.Brief {
		patience = hangTimeout
	}
	began := time.Now()
	m, err := c.post(params, patience)
	note.took = time.Since(began)
	switch {
	case err != nil:
		note.Why = err.Error()
	case m.Result == nil || m.Result.Meta.Call == "":
		note.Why = "no result: " + m.raw
	default:
		note.Call, note.Status = m.Result.Meta.Call, m.Result.Meta.Status
	}
	return note
}

func (c *loadClient) post(params map[string]any, patience time.Duration) (m message, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return m, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + c.token,
		"MCP-Protocol-Version": revisions[0], "Mcp-Method": "tools/call", "Mcp-Name": fmt.Sprint(params["name"]),
	} {
		req.Header.Set(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return m, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return m, err
	}
	for line := range bytes.Lines(raw) { // also as events
		line = bytes.TrimPrefix(line, []byte("data: "))
		if json.Unmarshal(line, &m) == nil && m.Result != nil {
			return m, nil
		}
	}
	m.raw = string(raw[:min(len(raw), 300)])
	return m, nil
}

// runClients runs all clients for a time.
func runClients(ctx context.Context, all []*loadClient, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var clients sync.WaitGroup
	for _, c := range all {
		clients.Go(func() { c.run(ctx) })
	}
	clients.Wait()
}

// latency returns quantiles of the answered calls that met no trouble.
func latency(all []*loadClient) (p50, p99 time.Duration) {
	var took []time.Duration
	for _, c := range all {
		for _, n := range c.notes {
			if n.Status == "done" {
				took = append(took, n.took)
			}
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}
