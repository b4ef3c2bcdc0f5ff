//go:build !linux

package process

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/line"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

var errNoKeep = errors.New("what whole folders hold can be kept on Linux alone; name the files that a tool changes by its arguments instead")

type stamp struct{}

// shelf is not needed here: nothing is kept.
type shelf struct{}

func (*Keep) await(context.Context, host.Host, string) (*os.File, error) { return nil, errNoKeep }

func (*Keep) tree(context.Context, *line.Call, Tree) (*kept, error) { return nil, errNoKeep }

func (*kept) release() {}

func flush(*os.File) error { return errNoKeep }

func (*kept) differences(context.Context, *Driver, time.Time) ([]files.Before, error, error) {
	return nil, nil, errNoKeep
}

// Find finds nothing: no call here kept anything.
func (finder) Find(context.Context, revert.Call, journal.Keeper) (revert.Found, error) {
	return revert.Found{}, nil
}
