package files_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// person is a user of the machine other than the one that remit runs as.
type person struct {
	uid  uint32
	gids []uint32
}

func (p person) String() string { return fmt.Sprint("user ", p.uid, " of ", p.gids) }

// people returns all users whose rights to the test files can differ.
func people() (all []person) {
	for _, uid := range []uint32{1001, 1002, 3000} {
		for _, gids := range [][]uint32{nil, {2001}, {2002}, {2001, 2002}, {uint32(os.Getegid())}} {
			all = append(all, person{uid, gids})
		}
	}
	return all
}

// The rights to a file: to read, write and run it, and to run it as its owner
// or its group.
const (
	rightX = 1 << iota
	rightW
	rightR
	rightGroup
	rightOwner
)

// may returns the rights that bits and list of one inode give a person, by the
// rules of acl(5).
func (p person) may(is unix.Stat_t, acl []byte) (rights uint32) {
	class := func() uint32 {
		if is.Uid == p.uid {
			return is.Mode >> 6 & 7
		}
		if len(acl) == 0 {
			if slices.Contains(p.gids, is.Gid) {
				return is.Mode >> 3 & 7
			}
			return is.Mode & 7
		}
		mask, groups, member := uint32(7), uint32(0), false
		for e := acl[4:]; len(e) > 0; e = e[8:] {
			if binary.LittleEndian.Uint16(e) == ofMask {
				mask = uint32(binary.LittleEndian.Uint16(e[2:]))
			}
		}
		for e := acl[4:]; len(e) > 0; e = e[8:] {
			tag, rights, id := binary.LittleEndian.Uint16(e), uint32(binary.LittleEndian.Uint16(e[2:])), binary.LittleEndian.Uint32(e[4:])
			switch {
			case tag == ofUser && id == p.uid:
				return rights & mask
			case tag == ofGroup && slices.Contains(p.gids, is.Gid), tag == 8 && slices.Contains(p.gids, id):
				groups, member = groups|rights, true
			}
		}
		if member {
			return groups & mask
		}
		return is.Mode & 7
	}
	rights = class()
	if is.Mode&unix.S_IFMT == unix.S_IFREG && rights&rightX != 0 {
		rights |= is.Mode >> 10 & 3 * rightGroup
	}
	return rights
}

// rightsByName holds the rights of each person at one moment: to each name, and to
// each content under any name.
type rightsByName map[string][]uint32

// seen reads a whole tree.
func seen(t *testing.T, dir string) rightsByName {
	t.Helper()
	all, out := people(), rightsByName{}
	var walk func(at string, through []bool)
	walk = func(at string, through []bool) {
		entries, err := os.ReadDir(at)
		require.NoError(t, err)
		for _, e := range entries {
			name := filepath.Join(at, e.Name())
			var is unix.Stat_t
			require.NoError(t, unix.Lstat(name, &is))
			if is.Mode&unix.S_IFMT == unix.S_IFLNK {
				continue
			}
			acl := make([]byte, 4096)
			n, _ := unix.Lgetxattr(name, disk.XattrAccess, acl)
			rights, next := make([]uint32, len(all)), make([]bool, len(all))
			for i, p := range all {
				if through[i] {
					rights[i] = p.may(is, acl[:max(0, n)])
					next[i] = rights[i]&rightX != 0
				}
			}
			if is.Mode&unix.S_IFMT == unix.S_IFDIR {
				walk(name, next)
				for i := range rights {
					if !next[i] {
						rights[i] &^= rightW // without the right to pass, a person cannot make names
					}
				}
			} else {
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				if len(data) > 0 {
					out.add("content "+string(data), rights)
				}
			}
			if !strings.HasPrefix(e.Name(), files.StagePrefix) {
				out.add(name[len(dir):], rights)
			} else if is.Mode&unix.S_IFMT == unix.S_IFDIR && len(entries) > 0 {
				continue // it is empty, and entries made there do not stay
			}
		}
	}
	walk(dir, slices.Repeat([]bool{true}, len(all)))
	return out
}

func (s rightsByName) add(what string, rights []uint32) {
	if s[what] == nil {
		s[what] = make([]uint32, len(rights))
	}
	for i, r := range rights {
		s[what][i] |= r
	}
}

// wider returns a place where a person has more rights than before and after.
func (s rightsByName) wider(before, after rightsByName) string {
	for _, what := range slices.Sorted(maps.Keys(s)) {
		for i, rights := range s[what] {
			had := uint32(0)
			for _, known := range []rightsByName{before, after} {
				if known[what] != nil {
					had |= known[what][i]
				}
			}
			if more := rights &^ had; more != 0 {
				return fmt.Sprintf("%s may do %03b with %q, and %03b before or after", people()[i], rights, what, had)
			}
		}
	}
	return ""
}

// draw creates random trees.
type draw struct {
	*rand.Rand

	root bool // it can change the owner of files
	acls bool
}

func (d draw) pick(of ...uint32) uint32 { return of[d.IntN(len(of))] }

// like draws owner, bits and list of an entry.
func (d draw) like(kind string) files.Version {
	own := uint32(0o600)
	v := files.Version{Type: kind, Owner: files.Owner{Known: true, User: uint32(os.Geteuid()), Group: uint32(os.Getegid())}, Xattrs: map[string][]byte{}}
	if kind == "dir" {
		own = 0o700
	}
	if d.root {
		v.Owner = files.Owner{Known: true, User: d.pick(0, 0, 1001, 1002), Group: d.pick(0, 2001, 2002)}
		own = d.pick(own, own, 0o700, 0o500, 0o100, 0)
	}
	v.Perm = fs.FileMode(own | d.pick(0, 0, 0o055, 0o050, 0o005, 0o044, 0o011, 0o077, 0o070, 0o007, 0o066, 0o022))
	if kind == "dir" && d.IntN(5) == 0 {
		v.Perm |= fs.ModeSticky
	}
	if d.acls && d.IntN(4) == 0 {
		v.Xattrs[disk.XattrAccess] = d.list(v.Perm)
	}
	if d.acls && kind == "dir" && d.IntN(6) == 0 {
		v.Xattrs[disk.XattrDefault] = d.list(0o777)
	}
	return v
}

// list draws a list for bits.
func (d draw) list(bits fs.FileMode) []byte {
	return []byte(list([3]uint32{ofOwner, uint32(bits) >> 6 & 7, nobody}, [3]uint32{ofUser, d.pick(0, 5, 7), 1001}, [3]uint32{ofGroup, d.pick(0, 5, 7), nobody},
		[3]uint32{8, d.pick(0, 5, 7), 2002}, [3]uint32{ofMask, uint32(bits) >> 3 & 7, nobody}, [3]uint32{ofOther, uint32(bits) & 7, nobody}))
}

// paths returns all possible paths of a tree.
func paths() (all []string) {
	for _, dir := range []string{"", "d/", "d/e/", "d/e/f/", "o/"} {
		for _, name := range []string{"a", "b"} {
			all = append(all, dir+name)
		}
	}
	return append([]string{"d", "d/e", "d/e/f", "o"}, all...)
}

// tree draws entries by name. An entry always has a folder as its parent.
func (d draw) tree(what string) map[string]files.DesiredFile {
	out := map[string]files.DesiredFile{}
	for _, name := range paths() {
		kind := "file"
		if base := path.Base(name); base != "a" && base != "b" {
			kind = "dir"
		}
		if up := path.Dir(name); up != "." && out[up].Type != "dir" || d.IntN(6) == 0 {
			continue
		}
		w := files.DesiredFile{Path: name, Version: d.like(kind), Mtime: time.Unix(1e9, 0)}
		if kind == "file" {
			w.Open = content(what + " of " + name)
		}
		out[name] = w
	}
	return out
}

// build creates a tree without the code under test.
func (d draw) build(t *testing.T, dir string, all map[string]files.DesiredFile) {
	t.Helper()
	order := slices.Sorted(maps.Keys(all))
	for _, name := range order {
		at := filepath.Join(dir, name)
		if all[name].Type == "dir" {
			require.NoError(t, os.Mkdir(at, 0o700))
			continue
		}
		require.NoError(t, os.WriteFile(at, []byte("before of "+name), 0o600))
	}
	for _, name := range slices.Backward(order) {
		at, v := filepath.Join(dir, name), all[name]
		if d.root {
			require.NoError(t, os.Chown(at, int(v.Owner.User), int(v.Owner.Group)))
		}
		for key, value := range v.Xattrs {
			require.NoError(t, unix.Setxattr(at, key, value, 0))
		}
		require.NoError(t, os.Chmod(at, v.Perm))
	}
}

// wanted returns the desired files of a program that turned one tree into
// another.
func (d draw) wanted(was, will map[string]files.DesiredFile) (all []files.DesiredFile) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, stays := will[name]; !stays && (path.Dir(name) == "." || will[path.Dir(name)].Type == "dir") {
			all = append(all, files.DesiredFile{Path: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(will)) {
		all = append(all, will[name])
	}
	slices.SortStableFunc(all, func(a, b files.DesiredFile) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// batch applies the desired files of a program as the only call of a
// transaction, which then ends, unless the process dies.
func (w *testEnv) batch(h *hosttest.Host, wanted []files.DesiredFile) error {
	w.t.Helper()
	on := h.OnPoint
	h.OnPoint = nil
	cfg := w.begin(h).Config()
	cfg.Changes = func(context.Context, *callstate.Call, callstate.ProposedChanges) ([]*record.Approved, error) {
		return nil, nil
	}
	c := callstate.New(cfg)
	b, err := fileInternals.NewChangeSet(c)
	require.NoError(w.t, err)
	err = b.Add(w.t.Context(), "workspace", time.Now().Add(time.Hour), wanted)
	if err == nil {
		err = b.Record(w.t.Context())
	}
	h.OnPoint = on
	if err == nil {
		err = b.Perform(w.t.Context())
	}
	h.OnPoint = nil
	b.Close()
	require.NoError(w.t, c.Close(w.t.Context()))
	if errors.Is(err, errProcessEnded) {
		return err
	}
	lines := append(c.Start(), revert.CallRecord{Call: cfg.ID, Body: &record.Done{Output: []byte("null"), Posts: c.Posts()}}, revert.CallRecord{Body: &record.Committed{}})
	require.NoError(w.t, cfg.Recorder.Write(w.t.Context(), revert.Write{Records: lines, End: true, Durable: true}))
	return err
}

// exposure is a test environment with a random tree that checks the rights after each step
// on the disk.
type exposure struct {
	*testEnv

	seed     uint64
	wanted   []files.DesiredFile
	during   []rightsByName
	states   []rightsByName // rights before and after each operation
	observed int
}

func newExposure(t *testing.T, seed uint64) *exposure {
	t.Helper()
	e := &exposure{testEnv: newTestEnv(t), seed: seed}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 17)), root: os.Geteuid() == 0, acls: seed%2 == 0 && keepsLists(e.dir)}
	was, will := d.tree("before"), d.tree("after")
	for _, name := range slices.Sorted(maps.Keys(will)) {
		v := will[name]
		if had, ok := was[name]; ok && d.IntN(3) == 0 {
			v.Version, v.Open, v.Mtime = had.Version, had.Open, time.Unix(1e9, 1)
			will[name] = v
		}
	}
	d.build(t, e.dir, was)
	e.wanted = d.wanted(was, will)
	e.root = &watched{e.root, func() { e.during = append(e.during, seen(t, e.dir)) }}
	e.states = []rightsByName{seen(t, e.dir)}
	return e
}

// check compares each step with two states.
func (e *exposure) check(what string, before, after rightsByName) {
	e.t.Helper()
	for i, s := range e.during {
		require.Empty(e.t, s.wider(before, after), "seed %d, %s, step %d of %d", e.seed, what, i, len(e.during))
	}
	e.observed += len(e.during)
	e.during = nil
}

// ended checks the final state of an operation.
func (e *exposure) ended(what string) {
	e.t.Helper()
	e.states = append(e.states, seen(e.t, e.dir))
	e.check(what, e.states[len(e.states)-2], e.states[len(e.states)-1])
}

// TestRightsNeverWiden changes random trees of folders, owners, groups, bits and
// lists into others, reverts and redoes that. After each step on the disk, no
// person has more rights to any name or content than before or after the
// operation.
func TestRightsNeverWiden(t *testing.T) {
	rounds, observed := 40, 0
	if planStep() == 1 {
		rounds = 3000
	}
	for seed := range uint64(rounds) {
		e := newExposure(t, seed)
		require.NoError(t, e.batch(e.host(), e.wanted), "seed %d", seed)
		e.ended("apply")
		require.Empty(t, e.revert().NotReverted(), "seed %d", seed)
		e.ended("revert")
		require.Equal(t, e.states[0], e.states[2], "seed %d", seed)
		rep, err := e.reverter(e.host()).Redo(t.Context(), txn, "")
		require.NoError(t, err, "seed %d", seed)
		require.Empty(t, rep.NotReverted(), "seed %d", seed)
		e.ended("redo")
		require.Equal(t, e.states[1], e.states[3], "seed %d", seed)
		observed += e.observed
		e.end()
	}
	t.Logf("%d rounds, %d steps", rounds, observed)
	require.Greater(t, observed, 20*rounds)
}

// TestRightsNeverWidenAfterCrash kills the process at any point of such a change,
// and possibly also the one that reverts it. No person gains rights meanwhile,
// and the end state equals the start. A folder with neither its previous nor
// its target owner and list stays as it is, and the report names it.
func TestRightsNeverWidenAfterCrash(t *testing.T) {
	rounds, kept := 40, 0
	if planStep() == 1 {
		rounds = 3000
	}
	for seed := range uint64(rounds) {
		whole := newExposure(t, seed)
		points := 0
		h := whole.host()
		h.OnPoint = func(string) error { points++; return nil }
		require.NoError(t, whole.batch(h, whole.wanted))
		after := seen(t, whole.dir)
		whole.end()

		e, chance := newExposure(t, seed), rand.New(rand.NewPCG(seed, 18))
		if err := e.batch((&crash{left: 1 + chance.IntN(points)}).on(e.host()), e.wanted); !errors.Is(err, errProcessEnded) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		e.check("the first death", e.states[0], after)
		if chance.IntN(2) == 0 {
			_, _ = e.revertAs(t.Context(), (&crash{left: 1 + chance.IntN(4*points)}).on(e.host()))
			e.check("the second death", e.states[0], after)
		}
		rep, err := e.revertAs(t.Context(), e.host())
		require.NoError(t, err, "seed %d", seed)
		e.check("recovery", e.states[0], after)
		if len(rep.NotReverted()) > 0 {
			kept++
		} else {
			require.Equal(t, e.states[0], seen(t, e.dir), "seed %d", seed)
		}
		e.end()
	}
	t.Logf("%d rounds, %d of which a death between two attributes left to the user", rounds, kept)
	require.Less(t, kept, rounds/4)
}

// TestHeldFolder kills a process while a folder is held, with bits that it has
// neither before nor after the call. The revert recognizes that version, and no
// other.
func TestHeldFolder(t *testing.T) {
	for _, meddle := range []bool{false, true} {
		w := newTestEnv(t)
		require.NoError(t, os.Mkdir(filepath.Join(w.dir, "d"), 0o700))
		w.put("d/a", "one\n", 0o644)
		require.NoError(t, os.Chmod(filepath.Join(w.dir, "d"), 0o750))
		own := files.Owner(w.root.Self().Owner)
		var bits []fs.FileMode
		look := func() fs.FileMode {
			info, err := os.Stat(filepath.Join(w.dir, "d"))
			require.NoError(t, err)
			return info.Mode().Perm()
		}
		h := w.host()
		h.OnPoint = func(id string) error {
			bits = append(bits, look())
			if id == "files.exchange" {
				return errProcessEnded
			}
			return nil
		}
		require.ErrorIs(t, w.batch(h, []files.DesiredFile{
			{Path: "d", Version: files.Version{Type: "dir", Perm: 0o705, Owner: own}, Same: true},
			{Path: "d/a", Version: files.Version{Type: "file", Perm: 0o644, Owner: own}, Mtime: time.Unix(1e9, 0), Open: content("two\n"), Same: true},
		}), errProcessEnded)
		require.Equal(t, fs.FileMode(0o700), look())
		require.NotContains(t, bits, fs.FileMode(0o705))
		if meddle {
			require.NoError(t, os.Chmod(filepath.Join(w.dir, "d"), 0o711))
		}
		left := w.revert().NotReverted()
		require.Equal(t, "one\n", w.read("d/a"))
		if meddle {
			require.Len(t, left, 1)
			require.Equal(t, fs.FileMode(0o711), look())
			continue
		}
		require.Empty(t, left)
		require.Equal(t, fs.FileMode(0o750), look())
	}
}

// TestFolderStaysClosed checks that a revert does not expose a file that
// another process wrote in a folder which the call had closed.
func TestFolderStaysClosed(t *testing.T) {
	for _, theirs := range []fs.FileMode{0o600, 0o644} {
		for _, late := range []bool{false, true} {
			w := newTestEnv(t)
			require.NoError(t, os.Mkdir(filepath.Join(w.dir, "d"), 0o755))
			own := files.Owner(w.root.Self().Owner)
			require.NoError(t, w.batch(w.host(), []files.DesiredFile{
				{Path: "d", Version: files.Version{Type: "dir", Perm: 0o700, Owner: own}, Same: true},
				{Path: "d/a", Version: files.Version{Type: "file", Perm: 0o600, Owner: own}, Mtime: time.Unix(1e9, 0), Open: content("ours\n")},
			}))
			meddle := func() { w.put("d/a", "theirs\n", theirs) }
			h := w.host()
			if late {
				h.OnPoint = at("files.rename", meddle)
			} else {
				meddle()
			}
			rep, err := w.revertAs(t.Context(), h)
			require.NoError(t, err)
			bits, open := fs.FileMode(0o755), theirs == 0o600
			if !open {
				bits = 0o700
			}
			info, err := os.Stat(filepath.Join(w.dir, "d"))
			require.NoError(t, err)
			require.Equal(t, bits, info.Mode().Perm(), "%v %v", theirs, late)
			require.Equal(t, "theirs\n", w.read("d/a"))
			if !open {
				require.Len(t, rep.NotReverted(), 2)
				require.Contains(t, rep.NotReverted()[0].Why+rep.NotReverted()[1].Why, `it would give others access to "`)
			}
		}
	}
}

// keepsLists reports whether a file system stores access control lists.
func keepsLists(dir string) bool {
	at := filepath.Join(dir, "probe")
	defer func() { _ = os.Remove(at) }()
	return os.WriteFile(at, nil, 0o600) == nil && unix.Setxattr(at, disk.XattrAccess, []byte(listForUser1(6)), 0) == nil
}
