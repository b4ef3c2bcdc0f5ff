//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Each test here covers a common trap for sandboxes on Linux. More of them are
// in TestChanges (an overlay without userxattr cannot remove what lies below
// it), TestContent (what the program may not read, its user may not either),
// TestBreakout (gaps of Landlock), TestDaemons, TestMemory and
// TestTrapForeignOwner.

// runOutput runs a program with one root and returns its output.
func runOutput(t *testing.T, spec Spec) string {
	t.Helper()
	needStrict(t)
	if spec.Env == nil {
		spec.Env = []string{"PATH=/usr/bin:/bin"}
	}
	text, _, p := finish(t, spec)
	require.NoError(t, p.Close())
	return text
}

func shell(script string) []string { return []string{"sh", "-c", script} }

// TestTrapNullDevice checks that /dev/null is granted. Otherwise Landlock
// refuses it, and most programs cannot start others.
func TestTrapNullDevice(t *testing.T) {
	require.Equal(t, "ok", runOutput(t, Spec{Argv: shell(`echo lost > /dev/null; cat < /dev/null; head -c 4 /dev/zero > /dev/null; printf ok`)}))
	exe, err := os.Executable()
	require.NoError(t, err)
	text := runOutput(t, Spec{Argv: []string{exe}, Env: []string{probeEnv + "=start a program", "PATH=/usr/bin:/bin"}, System: append(System(), exe)})
	require.True(t, strings.HasPrefix(text, "started\n"), text)
}

// startProgram is a program that starts another one as Go programs do.
func startProgram() int {
	if err := exec.Command("true").Run(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	return 0
}

// TestTrapCapabilities checks that a program has no capability and cannot get
// one. Ambient capabilities survive the start of a program, and the root user
// regains others through the inheritable set.
func TestTrapCapabilities(t *testing.T) {
	status := runOutput(t, Spec{Argv: shell("cat /proc/self/status")})
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		require.Contains(t, status, set+":\t0000000000000000\n")
	}
	require.Contains(t, status, "NoNewPrivs:\t1\n")
	require.Contains(t, status, "Seccomp:\t2\n")
	require.Contains(t, status, "SigIgn:\t0000000000000000\n")
	require.Contains(t, status, "SigBlk:\t0000000000000000\n")
}

// TestTrapIgnoredSignals checks that a program ignores no signals, although
// processes inherit ignored ones. Below nohup SIGHUP is ignored, in a shell
// without job control SIGTSTP may be.
func TestTrapIgnoredSignals(t *testing.T) {
	ignored := []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTSTP, syscall.SIGUSR1}
	signal.Ignore(ignored...)
	defer signal.Reset(ignored...)
	require.Contains(t, runOutput(t, Spec{Argv: shell("cat /proc/self/status")}), "SigIgn:\t0000000000000000\n")
}

// TestTrapOwnNumber checks that all users keep their IDs. An ordinary user who
// became root inside could not change the owner of files.
func TestTrapOwnNumber(t *testing.T) {
	require.Equal(t, fmt.Sprintf("%d %d\n", os.Getuid(), os.Getgid()), runOutput(t, Spec{Argv: shell("echo $(id -u) $(id -g)")}))
	root := newRoot(t)
	require.Equal(t, fmt.Sprintln(os.Getuid()), runOutput(t, Spec{
		Argv: shell("touch n && stat -c %u n"), Dir: root, Roots: []Root{{Dir: root, View: Overlay}},
	}))
}

// TestTrapVolatile checks that copied-up files are not synced, as they are
// without volatile.
func TestTrapVolatile(t *testing.T) {
	root := newRoot(t)
	_, mounts := runIn(t, root, "grep overlay /proc/self/mountinfo")
	require.Contains(t, mounts, "volatile")
	require.True(t, strings.Contains(mounts, "userxattr") || strings.Contains(mounts, "redirect_dir=on"), mounts)
}

// TestTrapSparse checks that a copied-up file keeps its holes.
func TestTrapSparse(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	f, err := os.Create(filepath.Join(root, "sparse"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<30))
	require.NoError(t, f.Close())
	p, out := runIn(t, root, "printf end >> sparse")
	require.Empty(t, out)
	f, err = p.Open(root, "sparse")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, int64(1<<30+3), info.Size())
	is, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	require.Less(t, is.Blocks, int64(1<<10))
}

// TestTrapOverlayAttributes checks that an attribute of a program does not act
// as the overlay's metadata, which has names that a program can also write.
func TestTrapOverlayAttributes(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	p, err := Start(context.Background(), "", Spec{
		Argv: []string{exe}, Env: []string{probeEnv + "=write overlay attributes"}, Dir: root, System: append(System(), exe),
		Roots: []Root{{Dir: root, View: Overlay}},
	}, Stdio{})
	require.NoError(t, err)
	exit, err := p.Wait()
	require.NoError(t, err)
	changes, err := p.Changes(root)
	require.NoError(t, err)
	for _, w := range changes {
		require.False(t, w.Replaced, w.Name)
	}
	if exit.Code == 0 { // kernels since 6.8 keep such an attribute under another name
		require.Equal(t, "d", changes[1].Name)
		require.Equal(t, map[string][]byte{"user.overlay.opaque": []byte("y")}, changes[1].Xattrs)
	}
	require.NoError(t, p.Close())
}

func writeOverlayAttributes() int {
	if unix.Setxattr("d", "user.overlay.opaque", []byte("y"), 0) != nil {
		return 1
	}
	return 0
}

// TestTrapUpperOnOverlay checks that written files cannot lie on an overlay, as
// in a container whose disk is one. The error comes before the program starts,
// and memory works. A program can read from one.
func TestTrapUpperOnOverlay(t *testing.T) {
	if os.Getenv(restrictEnv) != "overlay" {
		needStrict(t)
		exe, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(exe, "-test.v", "-test.run", "^TestTrapUpperOnOverlay$")
		dir := t.TempDir()
		cmd.Env = []string{restrictEnv + "=overlay", "TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
		cmd.SysProcAttr, err = namespaces(true, []string{"network", "processes", "messages"})
		require.NoError(t, err)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: TestTrapUpperOnOverlay")
		return
	}
	root := filepath.Join(os.TempDir(), "both", "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a"), []byte("a"), 0o644))
	upper := filepath.Join(os.TempDir(), "both", "upper")
	require.NoError(t, os.Mkdir(upper, 0o755))
	for dir, view := range map[string]View{upper: Direct, "": Overlay} {
		w, err := Probe(context.Background(), "", root, dir)
		require.NoError(t, err)
		require.Equal(t, view, w.View, w.Why)
	}
	ran := filepath.Join(root, "ran")
	_, err := Start(context.Background(), "", Spec{Argv: []string{"touch", ran}, Roots: []Root{{Dir: root, View: Overlay, Upper: upper}}}, Stdio{})
	var none NoOverlayError
	require.ErrorAs(t, err, &none)
	require.NoFileExists(t, ran)
	require.Equal(t, "a", runOutput(t, Spec{Argv: shell("printf more >> a && cut -c1 a | tr -d '\\n'"), Dir: root, Roots: []Root{{Dir: root, View: Overlay}}}))
}

// mountOverlay mounts an overlay on a folder, for TestTrapUpperOnOverlay.
func mountOverlay(dir string) error {
	for _, name := range []string{"lower", "upper", "work", "both"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("userxattr,lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	return unix.Mount("overlay", filepath.Join(dir, "both"), "overlay", 0, options)
}

// TestTrapWholeMachine checks that the root folder cannot be a root: an overlay
// cannot have it below.
func TestTrapWholeMachine(t *testing.T) {
	_, err := Start(context.Background(), "", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: "/", View: Overlay}}}, Stdio{})
	require.ErrorContains(t, err, "below /")
}

// TestTrapHungShim checks that a shim that never responds blocks no caller
// after the end of its context.
func TestTrapHungShim(t *testing.T) {
	needStrict(t)
	program := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Shim(program), Spec{Argv: []string{"true"}}, Stdio{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestTrapSignalsToProcess1 checks that signals do not end process 1. The Go
// runtime catches signals, so they could end it, unlike other first processes.
// Landlock blocks them. Without it the shim ignores them.
func TestTrapSignalsToProcess1(t *testing.T) {
	const script = `for s in 1 2 3 4 5 6 7 8 10 11 12 13 14 15 16 24 25 26 27 29 30 31 34 64; do kill -$s $PPID 2> /dev/null; done; sleep 0; printf alive`
	for _, without := range [][]string{nil, {"landlock"}} {
		require.Equal(t, "alive", runOutput(t, Spec{Argv: shell(script), without: without}))
	}
}

// TestTrapThreadOfStarter checks that a program cannot stop or end process 1 by
// signals to the thread that started it, while that exists. If the shim is not
// process 1, its guard outlives it: TestBareShimDies.
func TestTrapThreadOfStarter(t *testing.T) {
	needStrict(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	said, exit, sb := finish(t, Spec{
		Argv: []string{exe}, Env: []string{probeEnv + "=kill its starter"}, System: append(System(), exe), without: []string{"landlock"},
	})
	require.NoError(t, sb.Close())
	require.Equal(t, "reached true", said)
	require.Zero(t, exit.Code)
}

// TestTrapEnvironment checks that a program has exactly its given environment.
func TestTrapEnvironment(t *testing.T) {
	t.Setenv("REMIT_TEST_SECRET", "secret")
	require.Equal(t, "A=1\nB=two words\n", runOutput(t, Spec{Argv: []string{"/usr/bin/env"}, Env: []string{"A=1", "B=two words"}}))
	require.NotContains(t, runOutput(t, Spec{Argv: shell("cat /proc/*/environ 2> /dev/null")}), "secret")
}

// TestTrapMaskedLooksAbsent checks that a hidden name gives the same errors as
// a missing one.
func TestTrapMaskedLooksAbsent(t *testing.T) {
	root := newRoot(t)
	require.NoError(t, os.WriteFile(filepath.Join(root, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "vault"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "vault", "key"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "d", "deep"), []byte("secret"), 0o600))
	ask := `for op in "cat" "stat" "ls -ld" "rm" "rmdir" "readlink -v" "chmod 777" "touch -c" "wc" "cp -t /tmp" "mv -t /tmp" "ln -t /tmp" "mkdir -p /tmp/x; cat" "test -e"; do
		$op "$N" 2>&1; echo "$op $?"; done; cd "$N" 2>&1; (echo x < "$N") 2>&1; ls -a; ls -a d; find . | sort`
	masked := []string{"vault/key", "vault", "secret", "d/deep", "absent/too"} // a name below a hidden one comes first
	for _, view := range []View{Overlay, Read} {
		of := func(name string) string {
			text := runOutput(t, Spec{
				Argv: shell(ask), Env: []string{"PATH=/usr/bin:/bin", "N=" + name}, Dir: root,
				Roots: []Root{{Dir: root, View: view, Masked: masked}},
			})
			require.NotContains(t, text, "deep\n./", view)
			return strings.ReplaceAll(text, name, "NAME")
		}
		never := of("never-was")
		require.NotContains(t, never, "vault")
		require.NotContains(t, never, "secret")
		for _, name := range []string{"secret", "vault"} {
			require.Equal(t, never, of(name), "%s of a root seen as %s", name, view)
		}
	}
}

// TestTrapMountsTellNothing checks that the table of mounts, which every
// program can read, names the program's folders but not what lies behind them.
func TestTrapMountsTellNothing(t *testing.T) {
	root := newRoot(t)
	_, mounts := runIn(t, root, "cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats")
	require.Contains(t, mounts, root)
	mounts = strings.ReplaceAll(mounts, root, "")
	require.NotContains(t, mounts, "upper0")
	require.NotContains(t, mounts, filepath.Dir(root))
}

// TestNetworkGranted checks that the granted network permits connections, but
// no other kinds of sockets, and not those of the machine without an address.
func TestNetworkGranted(t *testing.T) {
	needStrict(t)
	o := makeOutside(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, open := range map[string]bool{
		"tcp connect": true, "tcp port of the host": true, "udp send": true, "mptcp connect": true,
		"raw": false, "packet": false, "netlink of devices": false, "netlink of anything": false, "vsock": false, "abstract socket": false, "path socket outside": false,
	} {
		text, exit, p := finish(t, Spec{
			Argv: []string{exe}, Env: append([]string{probeEnv + "=" + name}, o.env...), System: append(System(), exe), Network: true, Require: Strict,
		})
		require.NoError(t, p.Close())
		require.Equal(t, open, exit.Code == 0, "%s: %s", name, text)
	}
}

// TestDirect checks that writes in a root that is shown as it is land there,
// and that a socket in it is not reachable.
func TestDirect(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	require.Empty(t, runOutput(t, Spec{Argv: shell("printf new > a; rm b; mkdir n"), Dir: root, Roots: []Root{{Dir: root, View: Direct}}, Require: Strict}))
	data, err := os.ReadFile(filepath.Join(root, "a"))
	require.NoError(t, err)
	require.Equal(t, "new", string(data))
	require.NoFileExists(t, filepath.Join(root, "b"))
	require.DirExists(t, filepath.Join(root, "n"))

	l, err := net.Listen("unix", filepath.Join(root, "socket"))
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	exe, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, runOutput(t, Spec{
		Argv: []string{exe}, Env: []string{probeEnv + "=path socket in the root", "ROOT=" + root}, System: append(System(), exe),
		Roots: []Root{{Dir: root, View: Direct}},
	}), "address family not supported")

	_, err = Start(context.Background(), "", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: root, View: Direct, Masked: []string{"a"}}}}, Stdio{})
	require.ErrorContains(t, err, "nothing in it can be masked")
}

// TestRead checks that a read-only root cannot be written.
func TestRead(t *testing.T) {
	root := newRoot(t)
	text := runOutput(t, Spec{
		Argv: shell("cat a d/x link; printf x > a; rm b; touch n; chmod 777 a; mkdir m"), Dir: root,
		Roots: []Root{{Dir: root, View: Read}}, Require: Strict,
	})
	require.True(t, strings.HasPrefix(text, "ad/xa"), text)
	require.Equal(t, 5, strings.Count(text, "Read-only")+strings.Count(text, "Permission denied"), text)
}
