package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

const fullEnv = "REMIT_TEST_FULL_DISK" // a folder to mount a small disk on

// TestFullDisk fills a small disk. Batches that would need space for a revert
// are refused completely. Begun work can be ended and reverted, also by an
// opening that finds the disk full.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullEnv); dir != "" {
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"))
		fillsUp(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), fullEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var ran *exec.ExitError
	if err != nil && (!errors.As(err, &ran) || strings.Contains(string(out), "operation not permitted")) {
		t.Skipf("this system lets nobody mount a disk of his own: %v", err)
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS: TestFullDisk")
}

// disk is the small disk, and the file that fills it.
type disk struct {
	t   *testing.T
	dir string
}

func (d disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves no space but the reserve.
func (d disk) fill() {
	f, err := os.OpenFile(d.filler(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	require.NoError(d.t, err)
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		require.ErrorIs(d.t, err, syscall.ENOSPC)
	}
	require.NoError(d.t, f.Close())
}

func (d disk) whole() bool {
	info, err := os.Stat(filepath.Join(d.dir, "state", "reserve"))
	require.NoError(d.t, err)
	return info.Size() > 0
}

func (d disk) open() *sqlite.Journal { return open(d.t, filepath.Join(d.dir, "state")) }

// work is a transaction with calls that change something.
type work struct {
	rec   revert.Recorder
	calls int
}

func begun(t *testing.T, j *sqlite.Journal) *work {
	h := hosttest.New(1)
	w := &work{rec: revert.NewRecorder(j, h, "s_1").In("t_1")}
	own := journal.Ownership{Txn: "t_1", Owner: j.Owner()}
	require.NoError(t, w.rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Body: &record.Begun{Owner: j.Owner()}}}, Take: journal.OwnerChange{To: own}, Durable: true}))
	return w
}

func (w *work) start(ctx context.Context) error {
	w.calls++
	id := fmt.Sprint("c_", w.calls)
	return w.rec.Write(ctx, revert.Write{Durable: true, Claims: []string{id}, Records: []revert.CallRecord{
		{Call: id, Body: &record.Started{Sequence: w.calls, Key: id, Tool: record.ToolRef{Name: "put"}, Class: effect.Reversible, Confinement: "handles"}},
		{Call: id, Body: &record.Changed{Change: effect.Change{N: 1, Scheme: "kv", Resource: id, Kind: "write", Pre: effect.Absent, Post: "v:1"}}},
	}})
}

func (w *work) line(ctx context.Context, call int, b record.Body) error {
	return w.rec.Write(ctx, revert.Write{Records: []revert.CallRecord{{Call: fmt.Sprint("c_", call), Body: b}}, Durable: true})
}

func fillsUp(t *testing.T, dir string) {
	ctx, d := t.Context(), disk{t, dir}
	j := d.open()
	require.True(t, d.whole())
	w := begun(t, j)
	require.NoError(t, w.start(ctx))
	d.fill()
	var err error
	for err == nil { // until the files of the journal have no space left
		err = w.start(ctx)
	}
	require.ErrorContains(t, err, "no space left, nothing was stored")
	require.True(t, d.whole(), "what may have an effect does not touch the reserve")
	began := w.calls - 1 // the last one was refused
	for n := 1; n <= began; n++ {
		require.NoError(t, w.line(ctx, n, &record.Done{Output: []byte(`"` + strings.Repeat("x", 4000) + `"`)}), "call %d of %d", n, began)
	}
	for n := range 20 {
		require.NoError(t, w.rec.Write(ctx, revert.Write{Durable: true, Records: []revert.CallRecord{{Call: fmt.Sprint("c_undo", n), Body: &record.Reverting{
			Of: record.CallRef{Txn: "t_1", Call: "c_1"}, Key: "k", Cause: "abort", Steps: []effect.Step{},
		}}}}), "undo %d", n)
		require.NoError(t, w.rec.Write(ctx, revert.Write{Durable: true, Records: []revert.CallRecord{{Call: fmt.Sprint("c_undo", n), Body: &record.Reverted{
			Of: record.CallRef{Txn: "t_1", Call: "c_1"}, Complete: true, Results: []effect.Result{},
		}}}}))
	}
	require.False(t, d.whole(), "it was used")
	require.ErrorContains(t, w.start(ctx), "the disk has no space for a revert")
	require.NoError(t, j.Close())

	require.NoError(t, os.Remove(d.filler()))
	require.NoError(t, d.open().Close())
	require.True(t, d.whole(), "there was room for it")
	d.fill()
	j = d.open() // needs space itself
	require.False(t, d.whole())
	own := journal.Ownership{Txn: "t_1", Owner: j.Owner()}
	w.rec = revert.NewRecorder(j, hosttest.New(2), "s_1").In("t_1")
	adopt := revert.Write{Durable: true, Records: []revert.CallRecord{{Body: &record.Adopted{From: ownerOf(t, j), To: j.Owner()}}}, Take: journal.OwnerChange{From: ownerOf(t, j), To: own}}
	require.NoError(t, w.rec.Write(ctx, adopt))
	require.ErrorContains(t, w.start(ctx), "the disk has no space for a revert")
	require.NoError(t, os.Remove(d.filler()))
	require.NoError(t, w.start(ctx), "there is room again")
	require.True(t, d.whole())
	require.NoError(t, j.Close())
	_, err = sqlite.Fsck(ctx, filepath.Join(dir, "state"), revert.FsckOptions{})
	require.NoError(t, err)
}

// ownerOf returns the current owner of the only transaction.
func ownerOf(t *testing.T, j *sqlite.Journal) string {
	left, err := j.Unfinished(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1)
	return left[0].Owner
}
