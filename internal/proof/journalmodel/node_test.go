package journalmodel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// req is a request to an opening.
type req struct {
	Op    string
	Slot  int
	Dir   string
	To    string
	Batch wBatch
	Burst []wBatch
	Query journal.Query
	Ix    []int64
	Data  []byte
	Ref   effect.BlobRef
	Gone  []effect.BlobRef
	Owner string
}

// rsp is the answer.
type rsp struct {
	Err, Kind   string
	Res, Holder string
	Acks        int
	Entries     []record.Entry
	Head        journal.Head
	Hashes      []tlog.Hash
	Unfinished  []journal.Ownership
	Owner       string
	Data        []byte
	Blob        wBlob
	GC          journal.GCReport
	Alive       bool
}

// server has the openings of a process.
type server struct{ open map[int]*sqlite.Journal }

func (b wBatch) batch() journal.Batch {
	out := journal.Batch{Entries: b.Entries, Durable: b.Durable, Fence: b.Fence, Take: b.Take, Claims: b.Claims, Erase: b.Erase, End: b.End}
	for _, x := range b.Blobs {
		if x.Inline {
			out.Blobs = append(out.Blobs, journal.InlineBlob(x.Digest, x.Data))
		} else {
			out.Blobs = append(out.Blobs, journal.StoredBlob(effect.BlobRef{Digest: x.Digest, Size: x.Size}))
		}
	}
	return out
}

// kindOf returns the kind of an error of the contract.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, journal.ErrClaimed):
		return "claimed"
	case errors.Is(err, journal.ErrNotOwner):
		return "notowner"
	case errors.Is(err, journal.ErrNotFound):
		return "notfound"
	default:
		return "other"
	}
}

// do performs a request.
func (s *server) do(r req, on func(acks int)) (out rsp) {
	on(0)
	ctx := context.Background()
	j := s.open[r.Slot]
	var err error
	switch r.Op {
	case "open":
		j, err = sqlite.Open(ctx, r.Dir)
		if err == nil {
			s.open[r.Slot] = j
			out.Owner = j.Owner()
		}
	case "close":
		err = j.Close()
		delete(s.open, r.Slot)
	case "append":
		err = j.Append(ctx, r.Batch.batch())
	case "burst":
		for _, b := range r.Burst {
			if err = j.Append(ctx, b.batch()); err != nil {
				break
			}
			out.Acks++
			on(out.Acks)
		}
	case "entries":
		for e, e2 := range j.Entries(ctx, r.Query) {
			if e2 != nil {
				err = errors.Join(err, fmt.Errorf("entry %d: %w", e.Pos, e2))
				continue
			}
			out.Entries = append(out.Entries, e)
		}
	case "head":
		out.Head, err = j.Head(ctx)
	case "hashes":
		out.Hashes, err = j.Hashes(ctx, r.Ix)
	case "unfinished":
		out.Unfinished, err = j.Unfinished(ctx)
	case "store":
		var b journal.Blob
		b, err = j.StoreContent(ctx, bytes.NewReader(r.Data))
		if err == nil {
			out.Blob = wBlob{Digest: b.Ref().Digest, Size: b.Ref().Size, Inline: b.Inline().IsPresent()}
		}
	case "content":
		var rc io.ReadCloser
		rc, err = j.OpenContent(ctx, r.Ref)
		if err == nil {
			out.Data, err = io.ReadAll(rc)
			err = errors.Join(err, rc.Close())
		}
	case "gc":
		out.GC, err = j.CollectGarbage(ctx, r.Gone)
	case "alive":
		out.Alive, err = j.Alive(ctx, r.Owner)
	case "copy":
		err = copyDir(r.Dir, r.To)
	}
	if err != nil {
		out.Err, out.Kind = err.Error(), kindOf(err)
		var c *journal.ClaimedError
		if errors.As(err, &c) {
			out.Res, out.Holder = c.Resource, c.Holder
		}
	}
	return out
}

// node is a process: this one, or a child.
type node struct {
	srv *server
	cmd *exec.Cmd
	enc *gob.Encoder
	dec *gob.Decoder
	in  io.WriteCloser
}

// local returns this process.
func local() *node { return &node{srv: &server{open: map[int]*sqlite.Journal{}}} }

// childEnv tells these tests to be a child.
const childEnv = "REMIT_JOURNALMODEL_CHILD"

// child starts these tests as another process, which ends with the test.
func child(t *testing.T) *node {
	t.Helper()
	n := &node{cmd: exec.Command(os.Args[0])}
	n.cmd.Env = append(os.Environ(), childEnv+"=1")
	n.cmd.Stderr = os.Stderr
	var err error
	n.in, err = n.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := n.cmd.StdoutPipe()
	require.NoError(t, err)
	n.enc, n.dec = gob.NewEncoder(n.in), gob.NewDecoder(out)
	require.NoError(t, n.cmd.Start())
	t.Cleanup(n.kill)
	return n
}

// frame is a part of an answer of a child: its beginning, another stored batch
// of a burst, or its end.
type frame struct {
	More bool
	Acks int
	R    rsp
}

func (n *node) call(r req) (rsp, error) { return n.callWith(r, func(int) {}) }

// callWith sends a request. It calls back when the child begins and after each
// stored batch of a burst, with their number.
func (n *node) callWith(r req, on func(acks int)) (rsp, error) {
	if n.srv != nil {
		return n.srv.do(r, on), nil
	}
	if err := n.enc.Encode(r); err != nil {
		return rsp{}, err
	}
	acks := 0
	for {
		var f frame
		if err := n.dec.Decode(&f); err != nil {
			return rsp{Acks: acks}, err
		}
		if !f.More {
			return f.R, nil
		}
		acks = f.Acks
		on(acks)
	}
}

// killIn kills a child in a request, after a number of stored batches and an
// amount of work of this process.
func (n *node) killIn(r req, acks, work int) (rsp, error) {
	defer n.kill()
	return n.callWith(r, func(now int) {
		if now != acks {
			return
		}
		page := make([]byte, 4096)
		for range work {
			sum := sha256.Sum256(page)
			copy(page, sum[:])
		}
		_ = n.cmd.Process.Kill()
	})
}

// kill ends a child, if it has not ended.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// serve is the work of a child.
func serve() {
	s := &server{open: map[int]*sqlite.Journal{}}
	dec, enc := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var r req
		if dec.Decode(&r) != nil {
			for _, j := range s.open {
				_ = j.Close()
			}
			return
		}
		out := s.do(r, func(acks int) { _ = enc.Encode(frame{More: true, Acks: acks}) })
		_ = enc.Encode(frame{R: out})
	}
}

// copyDir copies files of a journal, without the one that SQLite shares between
// processes.
func copyDir(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	if err := os.Chmod(to, 0o700); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(to, "journal.db-shm"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
