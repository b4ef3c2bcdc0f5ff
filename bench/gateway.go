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
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// gateways holds calls through remit's gateway against calls through one that only passes them on: an HTTP client in front,
// an upstream over standard files behind, the same program each time. What only reads waits for no sync.
func gateways(c clock) ([]row, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of the system's temporary ones
	bare, err := startGateway(asBare)
	if err != nil {
		return nil, err
	}
	remit, err := startGateway(asRemit, dir)
	if err != nil {
		return nil, errors.Join(err, bare.end())
	}
	rows, err := gatewayRows(c, bare, remit)
	return rows, errors.Join(err, bare.end(), remit.end())
}

func gatewayRows(c clock, bare, remit *front) ([]row, error) {
	c.turn *= 4 // for p99 there have to be some hundreds of each round
	q, err := eachInTurns(
		c,
		contestant{name: "bare, 1 caller", op: bare.look}, contestant{name: "remit, 1 caller", op: remit.look},
		contestant{name: "bare, 64 callers", callers: many, op: bare.look}, contestant{name: "remit, 64 callers", callers: many, op: remit.look},
	)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, callers := range []string{"1 caller", "64 callers"} {
		of, to := "remit, "+callers, "bare, "+callers
		for _, p := range []struct {
			name string
			t    times
		}{{"p50", q.p50}, {"p99", q.p99}} {
			r := most("gateway", fmt.Sprintf("read through the gateway to a bare one, %s, %s", callers, p.name), p.t, of, to, 1.1)
			r.To += ", " + p.t.spread(of, to)
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// front is a gateway in a process of its own, and a client of it.
type front struct {
	cmd *exec.Cmd
	in  io.Closer
	cs  *sdk.ClientSession
}

func startGateway(args ...string) (*front, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &front{cmd: exec.Command(self, args...)}
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
	var at where
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		return nil, errors.Join(fmt.Errorf("%s says nothing: %w", args[0], err), f.end())
	}
	if err := f.connect(at); err != nil {
		return nil, errors.Join(err, f.end())
	}
	return f, nil
}

func (f *front) connect(at where) (err error) {
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

// bearer proves a session, also to a gateway that does not ask for it.
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

func (f *front) end() error {
	if f.cs != nil {
		_ = f.cs.Close() // the process ends in any case
	}
	return errors.Join(f.in.Close(), f.cmd.Wait())
}

// look reads once through the gateway.
func (f *front) look(caller int) error {
	return f.call("shelf__look", map[string]any{"path": fmt.Sprintf("src/%d/main.go", caller), "limit": 100, "raw": true}, "A second one")
}

func (f *front) call(name string, args map[string]any, want string) error {
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
