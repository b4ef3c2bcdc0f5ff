package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	upstreamServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"
	everything     = "package remit\n\nallow contains \"it is the suite\" if true\n"
	prefix         = "up__" // of the names that clients of the gateway know
)

// noTasks are scenarios about tools that the SDK's own server does not have.
func noTasks() []exception {
	return because(map[string][]string{
		"the go-sdk's server has no tools for it": {
			"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
			"tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
		},
		"it calls the first tool of the list, one of remit's own, and what stands before the gateway here takes each name for one of the server": {"http-header-validation"},
	})
}

// notResumed are scenarios about streams that break.
func notResumed() []exception {
	return because(map[string][]string{"a stream of an older revision that broke is not resumed": {"server-sse-polling"}})
}

// otherFlows are scenarios about ways to authorize that the gateway has not.
func otherFlows() []exception {
	return because(map[string][]string{"the gateway's connections authorize by codes that a person's browser brings, and bind no tokens to keys": {
		"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer",
	}})
}

// because lists scenarios by name, each with its reason.
func because(reasons map[string][]string) (all []exception) {
	for why, names := range reasons {
		for _, name := range names {
			all = append(all, exception{name, why})
		}
	}
	slices.SortFunc(all, func(a, b exception) int { return strings.Compare(a.name, b.name) })
	return all
}

// startGateway runs remit gateway before the SDK's own server for the suite, with a policy that allows all. The suite calls tools
// by names of its own, so what stands before it takes the gateway's prefix off.
func startGateway(ctx context.Context, dir string) (where []string, stop func() error, err error) {
	if err := build(ctx, dir); err != nil {
		return nil, nil, err
	}
	return startBefore(ctx, dir, map[string]any{"command": filepath.Join(dir, "upstream")})
}

// startGatewayByURL is startGateway with the server as one that keeps connections, as those of the older revisions do.
func startGatewayByURL(ctx context.Context, dir string) (where []string, stop func() error, err error) {
	if err := build(ctx, dir); err != nil {
		return nil, nil, err
	}
	addr, err := free()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "upstream"), "-http", addr, "-stateless=false")
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	if err := listens(ctx, addr); err != nil {
		end()
		return nil, nil, err
	}
	where, before, err := startBefore(ctx, dir, map[string]any{"type": "http", "url": "http://" + addr})
	if err != nil {
		end()
		return nil, nil, err
	}
	return where, func() error {
		defer end()
		return before()
	}, nil
}

// free returns an address of this machine at which no process listens.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// listens waits until a process listens on an address. It returns an error
// after 20 seconds.
func listens(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// build builds the two programs.
func build(ctx context.Context, dir string) error {
	for _, program := range [][2]string{{"remit", "./cmd/remit"}, {"upstream", upstreamServer}} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, program[0]), program[1])
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", program[1], err, said)
		}
	}
	return nil
}

// startBefore starts the gateway before one server.
func startBefore(ctx context.Context, dir string, server map[string]any) (where []string, stop func() error, err error) {
	config, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"up": server},
		"remit":      map[string]any{"servers": map[string]any{"up": map[string]any{"asks": []string{"elicitation", "sampling", "roots"}}}},
	})
	if err != nil {
		return nil, nil, err
	}
	workspace := filepath.Join(dir, "workspace")
	err = errors.Join(os.Mkdir(workspace, 0o700), os.WriteFile(filepath.Join(dir, "gateway.json"), config, 0o600), os.WriteFile(filepath.Join(dir, "policy.rego"), []byte(everything), 0o600))
	if err != nil {
		return nil, nil, err
	}
	addr, token, end, err := startCommand(ctx, dir, workspace)
	if err != nil {
		return nil, nil, err
	}
	where, closeFront, err := gatewayProcess(addr, token, nameMapper{})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return where, func() error { return errors.Join(closeFront(), end()) }, nil
}

// startCommand starts the gateway, and waits until it says where it is.
func startCommand(ctx context.Context, dir, workspace string) (addr, token string, stop func() error, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "remit"), "gateway", "--config", filepath.Join(dir, "gateway.json"),
		"--policy", filepath.Join(dir, "policy.rego"), "--state", filepath.Join(dir, "state"), "--workspace", workspace, "--http", "127.0.0.1:0", "--json")
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 20*time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", "", nil, err
	}
	end := func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		return cmd.Wait()
	}
	var at struct {
		URL       string `json:"url"`
		TokenFile string `json:"token_file"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		return "", "", nil, errors.Join(fmt.Errorf("remit gateway did not say where it is: %w\n%s", err, log.Bytes()), end())
	}
	text, err := os.ReadFile(at.TokenFile)
	if err != nil {
		return "", "", nil, errors.Join(err, end())
	}
	return strings.TrimSuffix(strings.TrimPrefix(at.URL, "http://"), "/mcp"), strings.TrimSpace(string(text)), end, nil
}

// nameMapper gives tools and prompts the names that the suite knows.
type nameMapper struct{}

// RoundTrip puts the prefix before what a request names, and takes it off what an answer does.
func (nameMapper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if to := rename(body); to != nil {
			body = to
			if name := r.Header.Get("Mcp-Name"); name != "" {
				r.Header.Set("Mcp-Name", prefix+name)
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Body = &lines{Closer: resp.Body, from: bufio.NewReader(resp.Body)}
	return resp, nil
}

// rename is a request with the prefix before the name in it; nil: it names nothing.
func rename(body []byte) []byte {
	var m, params map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || json.Unmarshal(m["params"], &params) != nil {
		return nil
	}
	var method string
	_ = json.Unmarshal(m["method"], &method)
	switch method {
	case "tools/call", "prompts/get":
		if !prefixed(params) {
			return nil
		}
	case "completion/complete":
		var ref map[string]json.RawMessage
		if json.Unmarshal(params["ref"], &ref) != nil || !prefixed(ref) {
			return nil // it is of a resource
		}
		params["ref"], _ = json.Marshal(ref)
	default:
		return nil
	}
	m["params"], _ = json.Marshal(params)
	out, _ := json.Marshal(m)
	return out
}

// prefixed puts the prefix before the name among some members; false: there is none.
func prefixed(members map[string]json.RawMessage) bool {
	var name string
	if json.Unmarshal(members["name"], &name) != nil || name == "" {
		return false
	}
	members["name"], _ = json.Marshal(prefix + name)
	return true
}

// lines takes the prefix off each line: a message is one.
type lines struct {
	io.Closer

	from *bufio.Reader
	left []byte
}

// Read reads what is left of a line.
func (l *lines) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		line, err := l.from.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		l.left = bytes.ReplaceAll(line, []byte(`"`+prefix), []byte(`"`))
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}
