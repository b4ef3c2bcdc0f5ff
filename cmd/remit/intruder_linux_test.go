package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// attempt is one way to get at what is somebody else's, or in everybody's way; want is how it must end.
type attempt struct {
	kind   string
	do     func(v, other *visitor) (got, want string)
	sealed bool // of the newest revision alone
}

// hostile is one in twenty, of both ways to talk.
func (v *visitor) hostile() bool { return v.n%40 == 7 || v.n%40 == 26 }

// intrude tries so often, each time at somebody else's cost. The slow ones go on beside.
func (v *visitor) intrude(times int) {
	var slow sync.WaitGroup
	for _, a := range []attempt{{kind: "a body that does not come", do: slowBody}, {kind: "headers that do not come", do: slowHeaders}} {
		slow.Go(func() { v.attempt(a, v) })
	}
	all := attempts()
	if v.kept { // nothing is sealed then, and there are no tasks
		all = slices.DeleteFunc(all, func(a attempt) bool { return a.sealed })
	}
	for i := range times - 2 {
		other := v
		for other == v || other.ready.txn == "" {
			other = v.c.all[v.r.IntN(len(v.c.all))]
		}
		v.attempt(all[(i+v.n/20)%len(all)], other)
	}
	slow.Wait()
}

func (v *visitor) attempt(a attempt, other *visitor) {
	got, want := a.do(v, other)
	v.c.count(a.kind)
	if !strings.Contains(got, want) {
		v.c.wrong("%s tried %s on %s: %q, want %q", v.who, a.kind, other.who, got, want)
	}
}

// Words that refuse.
const (
	notOpen   = "is not open in this session"
	notOwn    = "is no transaction or call of this session"
	notState  = "is none that this server gave for this call, or it was changed"
	notMore   = "does not wait any more"
	notFolder = "each has a folder of its own"
)

func attempts() []attempt {
	all := []attempt{
		{kind: "a token of one's own making", do: func(v, _ *visitor) (string, string) { return v.by("s_0123456789ab." + strings.Repeat("0", 64)), "401" }},
		{kind: "no token", do: func(v, _ *visitor) (string, string) { return v.by(""), "401" }},
		{kind: "another's session with a secret of one's own", do: func(v, other *visitor) (string, string) {
			_, secret, _ := strings.Cut(v.token, ".")
			return v.by(other.session() + "." + secret), "401"
		}},
		{kind: "another name of the server", do: func(v, _ *visitor) (string, string) {
			req := v.request("tools/list", map[string]any{})
			req.Host = "pages.example:80"
			return v.status(req), "403"
		}},
		{kind: "a page of somebody", do: func(v, _ *visitor) (string, string) {
			req := v.request("tools/list", map[string]any{})
			req.Header.Set("Origin", "https://pages.example")
			return v.status(req), "403"
		}},
		{kind: "a body that is too large", do: func(v, _ *visitor) (string, string) { return v.status(v.post(large())), "413" }},
		{kind: "a body that is too large and does not say so", do: func(v, _ *visitor) (string, string) {
			req := v.post(nil)
			req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewReader(large())), nil, -1
			return v.status(req), "413"
		}},
		{kind: "another's folder", do: func(v, other *visitor) (string, string) {
			return v.refusalText("file_read", map[string]any{"path": other.who + "/kept.txt"}, nil), notFolder
		}},
		{kind: "to write into another's folder", do: func(v, other *visitor) (string, string) {
			return v.refusalText("file_write", map[string]any{"path": other.who + "/kept.txt", "content": "mine"}, nil), notFolder
		}},
		{kind: "a call in another's transaction", do: func(v, other *visitor) (string, string) {
			args := map[string]any{"path": v.who + "/x.txt", "content": "x"}
			return v.refusalText("file_write", args, map[string]any{"_meta": map[string]any{"remit.dev/txn": other.ready.txn}}), notOpen
		}},
		{sealed: true, kind: "to answer by an altered state", do: func(v, _ *visitor) (string, string) {
			path, state := v.own()
			middle := len(state) / 2
			changed := "A"
			if state[middle] == 'A' {
				changed = "B"
			}
			return v.refusalText("file_write", v.readLetter(path), redeem(state[:middle]+changed+state[middle+1:], "yes")), notState
		}},
		{sealed: true, kind: "to answer about another input", do: func(v, _ *visitor) (string, string) {
			_, state := v.own()
			return v.refusalText("file_write", v.readLetter("letters/another.txt"), redeem(state, "yes")), notState
		}},
		{sealed: true, kind: "to answer another's question", do: func(v, other *visitor) (string, string) {
			other = askedOf(v, other)
			return v.refusalText("file_write", other.readLetter(other.ready.path), redeem(other.ready.state, "yes")), notState
		}},
		{sealed: true, kind: "to answer twice", do: func(v, _ *visitor) (string, string) {
			path, state := v.own()
			if first := v.refusalText("file_write", v.readLetter(path), redeem(state, "no")); !strings.Contains(first, "denied") {
				return first, "denied"
			}
			return v.refusalText("file_write", v.readLetter(path), redeem(state, "yes")), notMore
		}},
		{kind: "another's connection", do: func(v, other *visitor) (string, string) {
			return v.status(v.on(keptOf(v, other).conn, v.request("tools/list", map[string]any{}))), "403"
		}},
		{kind: "to end another's connection", do: func(v, other *visitor) (string, string) {
			req := v.on(keptOf(v, other).conn, v.post(nil))
			req.Method, req.Body, req.GetBody, req.ContentLength = http.MethodDelete, nil, nil, 0
			return v.status(req), "403"
		}},
		{sealed: true, kind: "another's task", do: func(v, other *visitor) (string, string) {
			_, m := v.send(v.request("tasks/get", map[string]any{"taskId": askedOf(v, other).ready.asked}), "")
			return m.text(), "-32602 unknown task"
		}},
		{sealed: true, kind: "to end another's task", do: func(v, other *visitor) (string, string) {
			_, m := v.send(v.request("tasks/cancel", map[string]any{"taskId": askedOf(v, other).ready.asked}), "")
			return m.text(), "-32602 unknown task"
		}},
	}
	for _, name := range []string{"txn_commit", "txn_revert", "txn_preview", "txn_status"} {
		all = append(all, attempt{kind: name + " of another's transaction", do: func(v, other *visitor) (string, string) {
			return v.refusalText(name, map[string]any{"txn": other.ready.txn}, nil), notOwn
		}})
	}
	for _, name := range []string{"txn_revert", "txn_preview"} {
		all = append(all, attempt{kind: name + " of another's call", do: func(v, other *visitor) (string, string) {
			return v.refusalText(name, map[string]any{"call": other.ready.call}, nil), notOwn
		}})
	}
	return all
}

// large is a body that is over the bound.
func large() []byte { return bytes.Repeat([]byte("x"), 4<<20+1) }

// status sends a request that must not come through, and says what came back.
func (v *visitor) status(req *http.Request) string {
	status, m := v.send(req, "")
	if m.Result != nil {
		return m.raw
	}
	return fmt.Sprint(status)
}

// by sends a request by a token.
func (v *visitor) by(token string) string {
	req := v.request("tools/list", map[string]any{})
	req.Header.Del("Authorization")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return v.status(req)
}

// on makes a request one of a connection.
func (v *visitor) on(conn string, req *http.Request) *http.Request {
	req.Header.Set("Mcp-Session-Id", conn)
	req.Header.Set("MCP-Protocol-Version", revisions[1])
	return req
}

// askedOf is a visitor with a call that waits for an answer.
func askedOf(v, other *visitor) *visitor {
	for other.ready.state == "" {
		other = v.c.all[v.r.IntN(len(v.c.all))]
	}
	return other
}

// keptOf is a visitor with a connection.
func keptOf(v, other *visitor) *visitor {
	for other == v || other.conn == "" || other.ready.txn == "" {
		other = v.c.all[v.r.IntN(len(v.c.all))]
	}
	return other
}

// refusalText calls a tool that must refuse, and says how it does: nothing, where it does not.
func (v *visitor) refusalText(name string, args, more map[string]any) string {
	params := map[string]any{"name": name, "arguments": args}
	maps.Copy(params, more)
	_, m := v.send(v.request("tools/call", params), "no")
	if m.ok() || m.Result == nil && m.Error == nil {
		return "not refused: " + m.raw
	}
	return m.raw
}

// own is a question to oneself, and its state.
func (v *visitor) own() (path, state string) {
	path = fmt.Sprintf("letters/%d.txt", v.r.Uint64())
	_, m := v.send(v.request("tools/call", map[string]any{"name": "file_write", "arguments": v.readLetter(path)}), "no")
	if m.Result == nil || m.Result.State == "" {
		v.c.wrong("%s was not asked: %s", v.who, m.raw)
		return path, strings.Repeat("A", 100)
	}
	return path, m.Result.State
}

// slowBody begins a request and does not go on; it is told so.
func slowBody(v, _ *visitor) (got, want string) {
	return v.slowly(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", v.token)), "408"
}

// slowHeaders does not get as far as that; the connection is ended.
func slowHeaders(v, _ *visitor) (got, want string) {
	return v.slowly("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: "), "(ended)"
}

func (v *visitor) slowly(begin string) string {
	var d net.Dialer
	conn, err := d.DialContext(context.Background(), "tcp", strings.TrimSuffix(strings.TrimPrefix(v.c.url, "http://"), "/mcp"))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, begin); err != nil {
		return err.Error()
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		return err.Error()
	}
	return string(answer) + "(ended)"
}
