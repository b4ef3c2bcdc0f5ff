package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// Accept accepts a journal that Open refuses with ErrIncomplete: its remaining
// entries count from now on. It writes a record with the person and the missing
// entries, and then the new head file. If the process dies in between, the
// journal is still refused. The remaining entries must be consistent. Accept
// returns an error for a complete journal, and does not change it.
func Accept(ctx context.Context, dir, by string) (what record.Accepted, err error) {
	if dir, err = filepath.Abs(dir); err == nil {
		what, err = accept(ctx, dir, by)
	}
	if err != nil {
		err = fmt.Errorf("journal in %s: %w", dir, err)
	}
	return what, err
}

func accept(ctx context.Context, dir, by string) (what record.Accepted, err error) {
	j := &Journal{dir: dir, wait: busyBackoff{limit: time.Minute}, accepts: true}
	w, err := lookAtFolder(dir, j.wait)
	if err != nil {
		return what, err
	}
	if err := j.open(ctx); err != nil {
		return what, errors.Join(err, j.Close())
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	switch err := w.complete(ctx, j); {
	case err == nil:
		return what, errors.New("nothing is missing, so nothing was accepted")
	case !errors.Is(err, ErrIncomplete):
		return what, err
	}
	if err := j.checkWhole(ctx); err != nil {
		return what, err
	}
	is, err := j.Head(ctx)
	if err != nil {
		return what, err
	}
	what = record.Accepted{By: by, Found: is.String()}
	if !w.none && w.bad == nil {
		what.Promised, what.Missing = w.mark.head.String(), max(w.mark.head.Size-is.Size, 0)
	}
	//mutant:barrier
	err = revert.NewRecorder(j, host.Real(), "").Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &what}}, Durable: true})
	j.whole = err == nil
	return what, err
}
