//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// restrictEnv selects how the test binary gives up namespaces before it runs
// its tests, as on a machine without them.
const restrictEnv = "REMIT_TEST_RESTRICT"

func restrict() {
	var err error
	switch os.Getenv(restrictEnv) {
	case "setting": // this process has its own user namespace
		err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	case "filter": // as container runtimes do
		err = refuseCall(unix.SYS_CLONE, unix.CLONE_NEWUSER)
	case "overlay": // see TestTrapUpperOnOverlay
		err = mountOverlay(os.TempDir())
	case "mount": // as systems do that create namespaces without privileges
		err = refuseCall(unix.SYS_MOUNT, 0)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// refuseCall makes a system call fail in this process and its children, if the
// first argument has a bit of flag set, or if flag is 0.
func refuseCall(nr, flag uint32) error {
	check := bpf.Instruction(bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: flag, SkipFalse: 1})
	if flag == 0 {
		check = bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 0}
	}
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 3},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
		check,
		bpf.RetConstant{Val: retEPERM},
		bpf.RetConstant{Val: retAllow},
	})
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// TestWithoutNamespaces runs the tests below as on a machine without
// namespaces, for each possible cause.
func TestWithoutNamespaces(t *testing.T) {
	if os.Getenv(restrictEnv) != "" {
		return
	}
	needStrict(t)
	for _, how := range []string{"setting", "filter", "mount"} {
		t.Run(how, func(t *testing.T) {
			exe, err := os.Executable()
			require.NoError(t, err)
			run := "^(TestBareProxy|TestBareLevel|TestBareOverlay|TestBareWrites|TestBareWay)$"
			if how == "setting" { // the rest is the same
				run = "^(TestBare.*|TestDaemons)$"
			}
			cmd := exec.Command(exe, "-test.v", "-test.run", run)
			cmd.Env = []string{restrictEnv + "=" + how, "TMPDIR=" + os.Getenv("TMPDIR"), "PATH=/usr/bin:/bin"}
			if how == "setting" {
				cmd.SysProcAttr, err = namespaces(true, []string{"network", "processes", "messages"})
				require.NoError(t, err)
				cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
				cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_RESOURCE}
			}
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			require.NoError(t, cmd.Run(), said.String())
			require.Contains(t, said.String(), "--- PASS: TestBareWrites", said.String())
			require.NotContains(t, said.String(), "SKIP", said.String())
		})
	}
}

func bareOnly(t *testing.T) {
	if os.Getenv(restrictEnv) == "" {
		t.Skip("run by TestWithoutNamespaces")
	}
}

// bareRun runs a script with a root that it writes directly and one that it
// only reads.
func bareRun(t *testing.T, root, other, script string) (string, Exit, Protections) {
	out, exit, p := finish(t, Spec{
		Argv: []string{"sh", "-c", script}, Dir: root, Env: []string{"PATH=/usr/bin:/bin", "OTHER=" + other}, Require: Partial,
		Roots: []Root{{Dir: root, View: Direct}, {Dir: other, View: Read}},
	})
	require.NoError(t, p.Close())
	require.NoDirExists(t, p.scratch)
	return out, exit, p.Reached()
}

// TestBareLevel checks that missing protections are reported, and that a higher
// required level is refused.
func TestBareLevel(t *testing.T) {
	bareOnly(t)
	_, exit, reached := bareRun(t, newRoot(t), newRoot(t), "true")
	require.Zero(t, exit.Code)
	require.Equal(t, Partial, reached.Level)
	require.True(t, slices.ContainsFunc(reached.Missing, func(m string) bool { return strings.HasPrefix(m, "namespaces: ") }), reached.Missing)
	_, err := Start(context.Background(), "", Spec{Argv: []string{"true"}, Require: Strict}, Stdio{})
	require.ErrorIs(t, err, ErrLevel)
	require.ErrorContains(t, err, "namespaces: ")
}

// TestBareOverlay checks that an impossible overlay is refused before the
// program starts, with the root and the reason.
func TestBareOverlay(t *testing.T) {
	bareOnly(t)
	root := newRoot(t)
	for _, r := range []Root{{Dir: root, View: Overlay}, {Dir: root, View: Read, Masked: []string{"a"}}} {
		_, err := Start(context.Background(), "", Spec{Argv: []string{"touch", root + "/ran"}, Roots: []Root{r}}, Stdio{})
		var none NoOverlayError
		require.ErrorAs(t, err, &none)
		require.Equal(t, root, none.Root)
		require.NoFileExists(t, root+"/ran")
	}
	var is unix.Stat_t
	require.NoError(t, unix.Stat(root, &is))
	_, err := Start(context.Background(), "", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: newRoot(t), View: Read, Dev: uint64(is.Dev), Ino: is.Ino}}}, Stdio{}) //nolint:unconvert // other widths elsewhere
	require.ErrorContains(t, err, "another folder is there")
}

// TestBareWrites checks that a program writes only in its root and in its own
// /tmp.
func TestBareWrites(t *testing.T) {
	bareOnly(t)
	root, other := newRoot(t), newRoot(t)
	beside := filepath.Dir(root)
	require.NoError(t, os.WriteFile(filepath.Join(beside, "secret"), []byte("secret"), 0o666))
	out, exit, _ := bareRun(t, root, other, `
		printf new > a; mkdir -p n/m; mv d e; ln -s a l2; printf x > "$TMPDIR/t" && cat "$TMPDIR/t" "$OTHER/a"
		(printf y > "$OTHER/a"; cat ../secret; printf y > ../secret; ls ..; cat /proc/1/environ; cat /etc/shadow; printf y > /tmp/remit-was-here) 2>/dev/null
		ln ../secret hard 2>/dev/null; mv a .. 2>/dev/null
		true`)
	require.Zero(t, exit.Code)
	require.Equal(t, "xa", out)
	for name, want := range map[string]string{root + "/a": "new", root + "/e/x": "d/x", other + "/a": "a", beside + "/secret": "secret"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err, name)
		require.Equal(t, want, string(data), name)
	}
	require.NoFileExists(t, root+"/hard")
	require.NoFileExists(t, "/tmp/remit-was-here")
}

// TestBareBreakout tries the breakouts that are also prevented without
// namespaces.
func TestBareBreakout(t *testing.T) {
	bareOnly(t)
	o := makeOutside(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	open := []string{
		"look outside", "chmod outside", "times outside", "attribute outside", "see a process", "control groups",
		"write into the root itself", "write through a hard link", "read what is masked", "fill the memory", // a root that is written directly
		"look at the outside of a link", "name of the host", "log of the kernel", "chmod a device", "times of a device", "network of the host",
		"terminals of the host", // their numbers are visible, like everything outside, but none can be opened
	}
	alone := []string{"fork bomb", "open everything", "take memory", "another shim"} // leaves too few resources for others
	var together []string
	for _, p := range probes() {
		if !slices.Contains(open, p.name) && !slices.Contains(alone, p.name) {
			together = append(together, p.name)
		}
	}
	require.Greater(t, len(together), 80)
	for _, names := range append([][]string{together}, chunks(alone)...) {
		said, exit, sb := finish(t, Spec{
			Argv: []string{exe}, Env: append([]string{probeEnv + "=" + strings.Join(names, ",")}, o.env...), System: append(System(), exe),
			Roots: []Root{{Dir: o.root, View: Direct}}, Limits: probeLimits, Require: Partial,
		})
		require.NoError(t, sb.Close())
		if names[0] == "fork bomb" && slices.ContainsFunc(sb.Reached().Missing, func(m string) bool { return strings.HasPrefix(m, "limit of processes: ") }) {
			continue // the root user, without a control group
		}
		require.Equal(t, 1, exit.Code, "it led out: %s", said)
		for _, name := range names {
			require.Contains(t, said, name+": ")
		}
	}
}

func chunks(names []string) (all [][]string) {
	for _, n := range names {
		all = append(all, []string{n})
	}
	return all
}

// TestBareParentDies checks that a shim that is not process 1 also ends its
// programs when its parent has died.
func TestBareParentDies(t *testing.T) {
	bareOnly(t)
	p, r := daemons(t, context.Background(), 3, "+")
	_, err := io.ReadFull(r, make([]byte, len("daemons\n")))
	require.NoError(t, err)
	require.NoError(t, syscall.Shutdown(int(p.socket.Fd()), syscall.SHUT_RDWR)) // as the kernel does then
	_, err = io.ReadAll(r)
	require.NoError(t, err)
}

// TestBareShimDies checks the guard of a shim that is not process 1. If the
// shim is killed, or is stopped when the call ends, no process of the program
// outlives it.
func TestBareShimDies(t *testing.T) {
	bareOnly(t)
	for _, sig := range []syscall.Signal{unix.SIGKILL, unix.SIGSTOP} {
		ctx, cancel := context.WithCancel(context.Background())
		p, r := daemons(t, ctx, 3, "+")
		_, err := io.ReadFull(r, make([]byte, len("daemons\n")))
		require.NoError(t, err)
		require.NoError(t, unix.Kill(childOf(t, p.shim.Pid), sig))
		if sig == unix.SIGSTOP {
			cancel()
		}
		_, err = p.Wait()
		require.Error(t, err)
		_, err = io.ReadAll(r)
		require.NoError(t, err)
		cancel()
	}
}

// childOf returns the only child of a process.
func childOf(t *testing.T, parent int) int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, text, _ = bytes.Cut(text, []byte(") "))
		if fields := strings.Fields(string(text)); fields[1] == fmt.Sprint(parent) {
			pid, err := strconv.Atoi(strings.Split(name, "/")[2])
			require.NoError(t, err)
			return pid
		}
	}
	require.Fail(t, "it has no child")
	return 0
}
