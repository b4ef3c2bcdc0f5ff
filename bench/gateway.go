package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// gateways compares calls through remit's gateway with calls through one that
// only forwards: an HTTP client in front, an upstream over standard files
// behind, the same program each time. Reads wait for no sync.
func gateways(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	c.slice *= 4                             // p99 needs some hundreds of calls in each round
	rows, err := readsThrough(c, dir)
	if err != nil {
		return nil, err
	}
	more, err := writesThrough(c, dir)
	return append(rows, more...), err
}

func readsThrough(c clock, dir string) (rows []promiseRow, err error) {
	bare, err := startGateway(asBare)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.end()) }()
	lax, err := startGateway(asBare, fmt.Sprint(letGather))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lax.end()) }()
	remit, err := startGateway(asRemit, filepath.Join(dir, "reads"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remit.end()) }()
	var all []subject
	for _, callers := range []int{1, many} {
		for _, f := range []struct {
			name string
			*gatewayProcess
		}{{"bare", bare}, {"bare, lax", lax}, {"remit", remit}} {
			all = append(all, subject{name: fmt.Sprintf("%s, %d", f.name, callers), callers: callers, op: f.look})
		}
	}
	q, err := interleaveEach(c, all...)
	if err != nil {
		return nil, err
	}
	for _, callers := range []int{1, many} {
		of, to, lax := fmt.Sprintf("remit, %d", callers), fmt.Sprintf("bare, %d", callers), fmt.Sprintf("bare, lax, %d", callers)
		for _, p := range []struct {
			name string
			t    times
		}{{"p50", q.p50}, {"p99", q.p99}} {
			what := fmt.Sprintf("read through the gateway to a bare one, callers: %d, %s", callers, p.name)
			r := most("gateway", what, p.t, of, to, 1.1)
			r.To += ", " + p.t.spread(of, to)
			rows = append(rows, r, besides("gateway", "the same to one whose garbage may gather as much", p.t, of, lax))
		}
	}
	return rows, nil
}

// writesThrough splits the time of a call that writes: the time with a journal
// in memory is the work, and the rest is the disk's sync.
func writesThrough(c clock, dir string) (rows []promiseRow, err error) {
	memory, err := os.MkdirTemp("/dev/shm", "remit-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: there is no file system in memory at /dev/shm, so writes are not looked at:", err)
		return nil, nil
	}
	defer func() { _ = os.RemoveAll(memory) }()
	onDisk, err := startGateway(asWriter, filepath.Join(dir, "writes"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, onDisk.end()) }()
	inMemory, err := startGateway(asWriter, memory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, inMemory.end()) }()
	sync, err := bareLog(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	q, err := interleaveEach(
		c,
		subject{name: "write", op: onDisk.put}, subject{name: "write in memory", op: inMemory.put}, subject{name: "read in memory", op: inMemory.look},
		subject{name: "one fdatasync", op: func(int) error { return sync() }},
	)
	if err != nil {
		return nil, err
	}
	t := q.p50
	for i := range t["write"] {
		t["waiting"] = append(t["waiting"], t["write"][i]-t["write in memory"][i])
	}
	return []promiseRow{
		besides("gateway", "write through the gateway to a read, journal in memory, p50", t, "write in memory", "read in memory"),
		besides("gateway", "what the disk adds to a write, which has three barriers, to one fdatasync, p50", t, "waiting", "one fdatasync"),
	}, nil
}

// gatewayProcess is a gateway in its own process, and a client of it.
type gatewayProcess struct {
	cmd *exec.Cmd
	in  io.Closer
	cs  *sdk.ClientSession
}

func startGateway(args ...string) (*gatewayProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &gatewayProcess{cmd: exec.Command(self, args...)}
	f.cmd.Stderr = os.Stderr
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	var at gatewayAddress
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		return nil, errors.Join(fmt.Errorf("%s says nothing: %w", args[0], err), f.end())
	}
	if err := f.connect(at); err != nil {
		return nil, errors.Join(err, f.end())
	}
	return f, nil
}

func (f *gatewayProcess) connect(at gatewayAddress) (err error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return errors.New("the default transport of net/http was replaced")
	}
	base = base.Clone()
	base.MaxIdleConnsPerHost = many // each caller keeps a connection
	t := &sdk.StreamableClientTransport{Endpoint: at.URL, HTTPClient: &http.Client{Transport: bearer{base, at.Token}}}
	f.cs, err = sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(context.Background(), t, nil)
	return err
}

// bearer sends a session token, also to a gateway that does not need one.
type bearer struct {
	http.RoundTripper

	token string
}

// RoundTrip sends a request.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

func (f *gatewayProcess) end() error {
	if f.cs != nil {
		_ = f.cs.Close() // the process ends in any case
	}
	return errors.Join(f.in.Close(), f.cmd.Wait())
}

// put makes one writing call through the gateway.
func (f *gatewayProcess) put(caller int) error {
	return f.call("shelf__put", map[string]any{"key": fmt.Sprint("k", caller), "text": "a text"}, "kept")
}

// look makes one reading call through the gateway.
func (f *gatewayProcess) look(caller int) error {
	return f.call("shelf__look", map[string]any{"path": fmt.Sprintf("src/%d/main.go", caller), "limit": 100, "raw": true}, "A second one")
}

func (f *gatewayProcess) call(name string, args map[string]any, want string) error {
	r, err := f.cs.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err
	}
	if r.IsError || len(r.Content) != 1 {
		return fmt.Errorf("%w: %v", errAnswer, r.Content)
	}
	if text, ok := r.Content[0].(*sdk.TextContent); !ok || !strings.Contains(text.Text, want) {
		return errAnswer
	}
	return nil
}
