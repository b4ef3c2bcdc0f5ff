//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// probeEnv selects the probe of a test binary that runs as the program of a
// sandbox.
const probeEnv = "REMIT_TEST_PROBE"

func TestMain(m *testing.M) {
	Main()
	if name := os.Getenv(probeEnv); name != "" {
		unix.Exit(beProbe(name)) // skips the cleanup of a test binary: the race detector waits a second
	}
	if text, ok := os.LookupEnv(daemonsEnv); ok {
		count, err := strconv.Atoi(strings.TrimSuffix(text, "+"))
		if err != nil {
			os.Exit(2)
		}
		unix.Exit(beDaemons(count, strings.HasSuffix(text, "+")))
	}
	restrict()
	os.Exit(m.Run())
}

// needStrict skips the test with the reason if the machine has no strict
// sandbox.
func needStrict(t *testing.T) {
	t.Helper()
	p, err := Start(context.Background(), "", Spec{Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}, Require: Strict}, Stdio{})
	if errors.Is(err, ErrNoSandbox) || errors.Is(err, ErrLevel) {
		t.Skip("this machine has no strict sandbox: " + err.Error())
	}
	require.NoError(t, err)
	_, err = p.Wait()
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

// beProbe tries to break out. Code 0 means success.
func beProbe(name string) int {
	switch name {
	case "use much memory":
		return useMemory()
	case "do operations":
		return doOperations()
	case "start a program":
		return startProgram()
	case "write overlay attributes":
		return writeOverlayAttributes()
	case "use its loopback":
		return useLoopback()
	case "use its proxy":
		return useProxy()
	case "meet rules":
		return meetRules()
	case "path socket there":
		if err := dialUnix(func() string { return os.Getenv("OUT") + "/there" })(); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	case "kill its starter":
		return killStarter()
	}
	code := 1
	for one := range strings.SplitSeq(name, ",") {
		i := slices.IndexFunc(probes(), func(p probe) bool { return p.name == one })
		if i < 0 {
			fmt.Println("no such probe")
			return 2
		}
		err := probes()[i].run()
		fmt.Printf("%s: %v\n", one, err)
		if err == nil {
			code = 0
		}
	}
	return code
}

// probe is one breakout. Its stops are the layers that prevent it. Without all
// of them it must succeed, for the root user or an ordinary one.
type probe struct {
	name  string
	stops []string
	by    string // "root" or "user": it can succeed only for this account
	run   func() error
}

func probes() []probe {
	return slices.Concat(netProbes(), kernelProbes(), fileProbes(), nodeProbes(), processProbes(), limitProbes(), infoProbes())
}

// outside is what a sandbox must not reach: a listener of each kind, a file, a
// process.
type outside struct {
	dir, root string
	env       []string
}

// makeOutside creates objects outside of the sandbox and puts their addresses
// into env.
func makeOutside(t *testing.T) *outside {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	o := &outside{dir: dir, root: filepath.Join(dir, "root")}
	require.NoError(t, os.MkdirAll(filepath.Join(o.root, "sub"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(o.root, "masked"), []byte("secret"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(o.root, "plain"), []byte("plain"), 0o666))
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(o.root, "link")))
	makeNodes(t, o)
	name, err := os.Hostname()
	require.NoError(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = tcp.Close() })
	go repeatAll(tcp)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = udp.Close() })
	go repeat(udp)
	six := ""
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		t.Cleanup(func() { _ = l.Close() })
		go repeatAll(l)
		six = l.Addr().String()
	}
	t.Setenv("TCP6", six)
	network, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	var terminals unix.Stat_t
	require.NoError(t, unix.Stat("/dev/pts/ptmx", &terminals))
	abstract := fmt.Sprintf("@remit-%d", os.Getpid())
	for _, at := range []string{abstract, filepath.Join(dir, "socket"), filepath.Join(o.root, "socket")} {
		_ = os.Remove(at)
		l, err := net.Listen("unix", at)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
	}
	key := uintptr(0x72<<24 | os.Getpid()) // several of these tests may run at once
	keepOutside(t, key)
	victim := exec.Command("sleep", "1000")
	require.NoError(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	o.env = []string{
		"TCP=" + tcp.Addr().String(), "UDP=" + udp.LocalAddr().String(), "ABSTRACT=" + abstract,
		"OUT=" + dir, "ROOT=" + o.root, fmt.Sprint("VICTIM=", victim.Process.Pid), "PATH=/usr/bin:/bin",
		"HOST=" + name, "TCP6=" + six, "NETWORK=" + network, fmt.Sprint("TERMINALS=", terminals.Dev), fmt.Sprint("IPC=", key), fmt.Sprint("PARENT=", os.Getpid()),
	}
	return o
}

// keepOutside creates a System V object of each kind under one key. It reuses
// those of an earlier run.
func keepOutside(t *testing.T, key uintptr) {
	const create, remove = 0o1000 | 0o666, 0
	for get, rest := range map[uintptr]struct{ args, ctl [3]uintptr }{
		unix.SYS_SHMGET: {[3]uintptr{key, 4096, create}, [3]uintptr{unix.SYS_SHMCTL, remove}},
		unix.SYS_MSGGET: {[3]uintptr{key, create, 0}, [3]uintptr{unix.SYS_MSGCTL, remove}},
		unix.SYS_SEMGET: {[3]uintptr{key, 1, create}, [3]uintptr{unix.SYS_SEMCTL, remove}},
	} {
		id, _, errno := unix.Syscall(get, rest.args[0], rest.args[1], rest.args[2])
		require.Zero(t, errno)
		t.Cleanup(func() {
			if rest.ctl[0] == unix.SYS_SEMCTL {
				_, _, _ = unix.Syscall(rest.ctl[0], id, 0, remove)
				return
			}
			_, _, _ = unix.Syscall(rest.ctl[0], id, remove, 0)
		})
	}
}

// finish runs a program and returns its output, after all its processes have
// ended.
func finish(t *testing.T, spec Spec) (said string, exit Exit, p *Process) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	p, err = Start(context.Background(), "", spec, Stdio{Out: w, Err: w})
	_ = w.Close()
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	exit, err = p.Wait()
	require.NoError(t, err)
	return string(text), exit, p
}

func (o *outside) try(t *testing.T, p probe, without []string) (out bool, said string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	upper, err := os.MkdirTemp(o.dir, "upper")
	require.NoError(t, err)
	spec := Spec{
		Argv: []string{exe}, Env: append([]string{probeEnv + "=" + p.name}, o.env...), Dir: "/", System: append(System(), exe),
		Roots:   []Root{{Dir: o.root, View: Overlay, Upper: upper, Masked: []string{"masked"}}},
		Limits:  probeLimits,
		without: without,
	}
	if without == nil { // a proxy must not open any way but itself
		spec.Proxy = []string{"HTTP_PROXY=http://127.0.0.1:3128"}
	}
	// Open in this process, for its children to inherit, and not for the
	// program.
	leak, err := unix.Open(filepath.Join(o.dir, "secret"), unix.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(leak) }()
	if len(without) == 0 {
		spec.Require = Strict
	}
	text, exit, sb := finish(t, spec)
	require.NoError(t, sb.Close())
	require.NoError(t, Discard(upper))
	require.NotEqual(t, 2, exit.Code, text)
	return exit.Code == 0, strings.TrimSpace(text)
}

// TestBreakout tries every breakout at the strictest level: none succeeds.
// Without the layers that prevent it, each succeeds, so the test can fail.
func TestBreakout(t *testing.T) {
	require.GreaterOrEqual(t, len(probes()), 60)
	needStrict(t)
	o := makeOutside(t)
	account := "user"
	if os.Getuid() == 0 {
		account = "root"
	}
	for _, p := range probes() {
		t.Run(p.name, func(t *testing.T) {
			out, said := o.try(t, p, nil)
			require.False(t, out, "it led out: %s", said)
			if p.by != "" && p.by != account {
				return
			}
			out, open := o.try(t, p, p.stops)
			require.True(t, out, "without %v it should lead out, or the probe shows nothing: %s (strict: %s)", p.stops, open, said)
		})
	}
}

// TestAsUser runs this file's tests again as an ordinary user without any
// capability.
func TestAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // this is an ordinary user already
	}
	exe, err := statcheck.Program(t.TempDir())
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "user")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	program := filepath.Join(dir, "sandbox.test")
	require.NoError(t, os.WriteFile(program, data, 0o755))
	cmd := exec.Command(program, "-test.v", "-test.run", "^(TestBreakout|TestChanges|TestContent|TestSurvivors|TestKillInFlight|TestRefusals|TestDaemons|TestMemory|TestWay|TestDirect|TestRead|TestNetworkGranted|TestRename.*|TestLoopback|TestProxy|TestUnixSockets|TestMeetRules|TestWithoutNamespaces|TestTrap.*)$")
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	require.NoError(t, err, said.String())
}
