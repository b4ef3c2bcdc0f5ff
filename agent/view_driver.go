package agent

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// viewsByKind holds the views of files and of drivers, by the kind of a
// resource.
type viewsByKind struct {
	verify.ResourceView

	of map[string]verify.ResourceView
}

func (rt *Runtime) widened(w verify.ResourceView, changes []effect.Change) verify.ResourceView {
	all := viewsByKind{ResourceView: w, of: map[string]verify.ResourceView{}}
	for _, d := range rt.services.Drivers {
		driver, ok := handleaccess.ViewOf(d)
		if !ok {
			continue
		}
		own := driver.View(changes)
		for _, kind := range driver.Kinds {
			if _, taken := all.of[string(kind)]; !taken { // a handle also uses the first driver of its type
				all.of[string(kind)] = own
			}
		}
	}
	if slices.ContainsFunc(changes, func(c effect.Change) bool { return c.Scheme == toolstate.SchemeName }) {
		all.of[toolstate.SchemeName] = toolstate.View(rt.journal, changes)
	}
	if len(all.of) == 0 {
		return w
	}
	return all
}

func (w viewsByKind) at(resource string) verify.ResourceView {
	kind, _, _ := strings.Cut(resource, "://")
	if own, ok := w.of[kind]; ok {
		return own
	}
	return w.ResourceView
}

// Version reads the version in the view of the resource's kind.
func (w viewsByKind) Version(ctx context.Context, resource string) (string, error) {
	return w.at(resource).Version(ctx, resource)
}

// Open reads in the view of the resource's kind.
func (w viewsByKind) Open(ctx context.Context, resource string) (io.ReadCloser, error) {
	return w.at(resource).Open(ctx, resource)
}

// Before reads in the view of the resource's kind.
func (w viewsByKind) Before(ctx context.Context, resource string) (io.ReadCloser, error) {
	return w.at(resource).Before(ctx, resource)
}
