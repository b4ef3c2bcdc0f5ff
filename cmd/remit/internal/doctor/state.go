package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// checkState checks the place of the journal, and the journal.
func checkState(ctx context.Context, a *cli.App, f *startup.Flags, folders []string, tell func(Finding)) {
	if err := f.Find(a); err != nil {
		p := state.ProblemOf(err, &f.Workspace)
		tell(Finding{Where: "state", Check: "folder", Is: Failing, What: p.Error(), Fix: p.Fix})
		return
	}
	if err := errors.Join(f.CheckStateOutside(folders), f.CheckRootsOutside(folders)); err != nil {
		p := state.ProblemOf(err, &f.Workspace)
		tell(Finding{Where: "state", Check: "outside", Is: Failing, What: p.Error(), Fix: "name a folder outside every root with --state"})
	} else {
		tell(Finding{Where: "state", Check: "outside", Is: Healthy, What: f.StateDir + " lies outside every root"})
	}
	there := nearestExisting(f.StateDir)
	tell(stateFileSystem(fileSystem(there)))
	tell(stateRights(f.StateDir, there))
	checkLogins(&f.Workspace, tell)
	if !f.HasJournal() {
		tell(Finding{Where: "journal", Check: "open", Is: Healthy, What: "none yet: the first remit run makes it"})
		return
	}
	checkJournal(ctx, &f.Workspace, tell)
}

// stateFileSystem checks the file system: the processes of one journal share
// locks and memory.
func stateFileSystem(kind string, is Health) Finding {
	f := Finding{Where: "state", Check: "filesystem", Is: is, What: kind}
	if is != Healthy {
		f.What += ": "
		f.Fix = "name a folder on a disk of this machine with --state"
	}
	switch is {
	case Healthy:
	case Weaker:
		f.What += "whether locks and memory of the journal hold there depends on what serves it"
	default:
		f.What += "other machines have it too, and locks and shared memory of the journal do not reach them"
	}
	return f
}

// stateRights checks the permissions: a journal contains what tools have read.
func stateRights(state, there string) Finding {
	f := Finding{Where: "state", Check: "rights", Is: Healthy}
	info, err := os.Stat(there)
	switch {
	case err != nil:
		f.Is, f.What, f.Fix = Failing, "cannot be looked at: "+cli.PlainError(err), "give yourself the right to enter the folders above it"
	case !info.IsDir():
		f.Is, f.What, f.Fix = Failing, fmt.Sprintf("%s is not a folder", there), "name a folder with --state"
	case there != state:
		return stateCreation(there)
	case runtime.GOOS == "windows":
		f.Is, f.What = Weaker, "who may enter it was not looked at: it is what the folder above gives"
		f.Fix = "keep the state in your own profile, which is private"
	case info.Mode().Perm()&0o077 != 0:
		f.Is, f.What = Failing, fmt.Sprintf("others may enter it (mode %04o), and a journal holds what tools have read", info.Mode().Perm())
		f.Fix = "chmod 700 " + cli.Quote(state)
	default:
		f.What = fmt.Sprintf("no other account can enter it (mode %04o)", info.Mode().Perm())
	}
	return f
}

// stateCreation checks whether the state folder can be created below the existing
// one.
func stateCreation(there string) Finding {
	f := Finding{Where: "state", Check: "rights", Is: Healthy, What: "not there yet, and can be made"}
	dir, err := os.MkdirTemp(there, ".remit-doctor-")
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil {
		f.Is, f.What = Failing, fmt.Sprintf("no folder can be made in %s: %s", there, cli.PlainError(err))
		f.Fix = "name another folder with --state, or give yourself the right: chmod u+w " + cli.Quote(there)
	}
	return f
}

func checkJournal(ctx context.Context, p *state.Workspace, tell func(Finding)) {
	open := p.Open
	if p.IsShared() {
		open = p.Look
	}
	j, err := open(ctx)
	if err != nil {
		fix := "copy the folder before anything else opens it, then see what " + p.Hint("fsck") + " finds"
		if p.IsShared() {
			fix = state.ProblemOf(err, p).Fix
		}
		tell(Finding{Where: "journal", Check: "open", Is: Failing, What: err.Error(), Fix: fix})
		return
	}
	defer func() { _ = j.Close() }()
	head, err := j.Head(ctx)
	if err != nil {
		tell(Finding{Where: "journal", Check: "head", Is: Failing, What: err.Error(), Fix: "see what " + p.Hint("fsck") + " finds"})
		return
	}
	format := fmt.Sprintf("store format %d, record version %d", sqlite.Format, record.Version)
	if p.IsShared() {
		format = fmt.Sprintf("PostgreSQL, record version %d", record.Version)
	}
	tell(Finding{Where: "journal", Check: "format", Is: Healthy, What: format})
	tell(Finding{Where: "journal", Check: "head", Is: Healthy, What: fmt.Sprintf("%s, head %s", cli.Entries(head.Size), head)})
	if !p.IsShared() {
		tell(Finding{Where: "journal", Check: "size", Is: Healthy, What: bytesWords(folderSize(p.StateDir)) + " in " + p.StateDir})
	}
	tell(openTxns(ctx, j, p))
}

// openTxns reports the open transactions, which hold claims.
func openTxns(ctx context.Context, j journal.Journal, p *state.Workspace) Finding {
	f := Finding{Where: "journal", Check: "open txns", Is: Healthy, What: "none is open"}
	open, err := j.Unfinished(ctx)
	gone := []string{}
	for _, o := range open {
		alive, err2 := journal.LooksAlive(ctx, j, o.Owner)
		err = errors.Join(err, err2)
		if err2 == nil && !alive {
			gone = append(gone, o.Txn)
		}
	}
	switch {
	case err != nil:
		f.Is, f.What, f.Fix = Failing, "they cannot be listed: "+err.Error(), "see what "+p.Hint("fsck")+" finds"
	case len(gone) > 0:
		f.Is = Weaker
		f.What = fmt.Sprintf("%s open, %d of them without an owner: what they touched is held", cli.Count(len(open), "transaction"), len(gone))
		f.Fix = "run " + p.Hint("recover") + ", then " + p.Hint("revert", gone[0])
	case len(open) > 0:
		f.What = cli.Count(len(open), "transaction") + " open, each with a living owner"
	}
	return f
}

// folderSize sums the sizes of the files. A file that disappears meanwhile
// counts zero.
func folderSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // an unreadable file counts zero
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

func bytesWords(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
}
