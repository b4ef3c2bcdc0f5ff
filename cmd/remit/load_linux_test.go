package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/serve"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// load is a gateway with servers that break down, and the clients that call them.
type load struct {
	t       *testing.T
	dir     string
	flags   []string
	cmd     *exec.Cmd
	errs    bytes.Buffer
	clients []*loadClient
	peak    atomic.Int64 // largest size on the disk of the state folder that was sampled
}

// TestLoad has 64 clients call servers that crash, hang and print noise, while the
// gateway drops what is past retention. Each answer that a client got is the outcome
// in the journal, each call without an answer has one there unless its client left, and the state folder
// stays small. With REMIT_LONG it lasts ten minutes. The variables LOAD_TIME,
// LOAD_PAUSE (of a client between two calls, on average) and LOAD_KEEP change that.
func TestLoad(t *testing.T) {
	long, pause, keep, clients := 4*time.Second, 20*time.Millisecond, "500ms", 16
	most := int64(60 << 20)
	if statcheck.Whole() {
		long, pause, keep, clients, most = 10*time.Minute, time.Second, "1m", 64, 150<<20
	}
	long, pause = loadTime(t, "LOAD_TIME", long), loadTime(t, "LOAD_PAUSE", pause)
	if text := os.Getenv("LOAD_KEEP"); text != "" {
		keep = text
	}
	l := newLoad(t, clients, pause)
	l.start(keep)
	stop := l.sample()
	began := time.Now()
	runClients(t.Context(), l.clients, long)
	took := time.Since(began)
	stop()
	memory := l.end()
	var notes []sentCall
	for _, c := range l.clients {
		notes = append(notes, c.notes...)
	}
	code, log := command(t, append([]string{"log", "--json"}, l.flags[:4]...)...)
	require.Zero(t, code)
	found, err := checkLoad([]byte(log), notes)
	require.NoError(t, err)
	for _, what := range found.lost[:min(len(found.lost), 20)] {
		t.Error(what)
	}
	code, out := command(t, append([]string{"fsck"}, l.flags[:4]...)...)
	require.Zero(t, code, out)
	p50, p99 := latency(l.clients)
	t.Logf("%d calls in %v (%.0f a second), %d answered, %d not, outcomes %v; a call took %v (p50) and %v (p99)",
		len(notes), took.Round(time.Millisecond), float64(len(notes))/took.Seconds(), found.answered, found.unanswered, found.outcomes, p50, p99)
	t.Logf("state folder on the disk: at most %.1f MB while it ran, sampled each second; %.1f MB at its end; memory of the gateway %d MiB at most",
		float64(l.peak.Load())/1e6, float64(diskUse(l.at("state")))/1e6, memory>>20)
	t.Logf("proved: load with retention: %d calls of %d clients in %d MB, %d violations", len(notes), clients, l.peak.Load()/1e6, len(found.lost))
	require.Less(t, l.peak.Load(), most)
	require.Positive(t, found.outcomes["unknown"]+found.outcomes["timeout"]+found.outcomes["failed"], "nothing broke down")
}

func loadTime(t *testing.T, name string, usually time.Duration) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return usually
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func (l *load) at(name string) string { return filepath.Join(l.dir, name) }

func newLoad(t *testing.T, clients int, pause time.Duration) *load {
	l := &load{t: t, dir: t.TempDir()}
	peer, err := exec.LookPath("troubled")
	require.NoError(t, err)
	servers, entries := map[string]any{}, map[string]any{}
	for _, how := range []string{"steady", "noisy", "crash", "hang"} {
		servers[how] = map[string]any{"command": peer, "args": []string{how}}
		entries[how] = map[string]any{"tools": map[string]any{
			"read":  map[string]any{"effectClass": "pure", "destination": "none", "timeout": loadTimeout},
			"write": map[string]any{"effectClass": "pivot", "undo": map[string]any{"snapshot": []string{"file://workspace/{path}"}}, "timeout": loadTimeout},
		}}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers, "remit": map[string]any{"servers": entries}})
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(l.at("ws"), 0o755))
	require.NoError(t, os.WriteFile(l.at("gateway.json"), config, 0o600))
	require.NoError(t, os.WriteFile(l.at("allow.rego"), []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	l.flags = []string{"--workspace", l.at("ws"), "--state", l.at("state"), "--config", l.at("gateway.json"), "--policy", l.at("allow.rego")}
	l.sessions(clients, pause)
	return l
}

// sessions makes a session for each client.
func (l *load) sessions(clients int, pause time.Duration) {
	var errs bytes.Buffer
	a, f := cli.NewApp(testEnv(nil, io.Discard, &errs)), &startup.Flags{}
	cmd := &cobra.Command{}
	serve.AddSessionFlags(a, cmd, f)
	f.OnAsk = "deny"                                  // nothing is asked here
	require.NoError(l.t, cmd.ParseFlags(l.flags[:6])) // a session holds nothing of the policy
	require.NoError(l.t, f.Check())
	rt, err := startup.Open(l.t.Context(), a, f)
	require.NoError(l.t, err, "%s", &errs)
	seed := killSeed(l.t)
	for n := range clients {
		f.As = fmt.Sprintf("p%02d", n)
		s, err := serve.NewSession(l.t.Context(), rt.Runtime, f)
		require.NoError(l.t, err)
		l.clients = append(l.clients, &loadClient{
			n: n, session: s.ID(), token: s.Token(), pause: pause, r: rand.New(rand.NewPCG(seed, uint64(n))), http: &http.Client{Transport: &http.Transport{}},
		})
	}
	require.NoError(l.t, rt.Close())
	require.NoError(l.t, a.Close())
}

// start starts the gateway, and waits until every server answers.
func (l *load) start(keep string) {
	program, err := exec.LookPath("really")
	require.NoError(l.t, err)
	args := []string{"gateway", "--http", "127.0.0.1:0", "--json"}
	if keep != "none" {
		args = append(args, "--keep", keep, "--keep-last", "10")
	}
	l.cmd = exec.Command(program, append(args, l.flags...)...)
	l.cmd.Dir, l.cmd.Stderr = l.at("ws"), &l.errs
	out, err := l.cmd.StdoutPipe()
	require.NoError(l.t, err)
	require.NoError(l.t, l.cmd.Start())
	l.t.Cleanup(func() {
		if l.cmd.ProcessState == nil {
			_ = l.cmd.Process.Kill()
			_ = l.cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(l.t, err)
	var where serve.Listening
	require.NoError(l.t, json.Unmarshal(line, &where))
	for _, c := range l.clients {
		c.url = where.URL
	}
}

// sample measures the state folder each second until stop is called.
func (l *load) sample() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	measure := func() {
		l.peak.Store(max(l.peak.Load(), diskUse(l.at("state"))))
	}
	go func() {
		defer close(ended)
		began := time.Now()
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-end:
				tick.Stop()
				measure()
				return
			case <-tick.C:
				measure()
				if s := int(time.Since(began).Seconds()); s%15 == 0 {
					l.t.Logf("%3d s: %.1f MB", s, float64(diskUse(l.at("state")))/1e6)
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}

// end ends the gateway and returns the most memory that it had.
func (l *load) end() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	require.NoError(l.t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(l.t, m)
	peak, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(l.t, err)
	require.NoError(l.t, l.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(l.t, l.cmd.Wait(), "%s", &l.errs)
	if said := l.errs.String(); said != "" {
		l.t.Logf("the gateway wrote %d lines, the last %.400s", strings.Count(said, "\n"), said[max(0, len(said)-400):])
	}
	return peak << 10
}

// diskUse is what du says of a folder.
func diskUse(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			n += s.Blocks * 512
		}
		return nil
	})
	return n
}
