package journalmodel_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/effect"
)

// markRE matches a mark.
var markRE = regexp.MustCompile(`M[KCB][0-9]{8}[0-9a-f]{8}`)

// gc collects, and looks for what must be gone.
func (d *driver) gc(o *opening) {
	d.st.gcs++
	var gone []effect.BlobRef // nil: all
	isGone := map[string]bool{}
	if d.r.IntN(2) == 0 {
		for _, b := range d.blobs {
			if d.r.IntN(2) == 0 {
				gone = append(gone, effect.BlobRef{Digest: b.Digest, Size: b.Size})
				isGone[b.Digest] = true
			}
		}
	}
	got := d.do(o, req{Op: "gc", Gone: gone})
	d.note("gc by %d of %d -> %+v %s", o.slot, len(gone), got.GC, got.Err)
	if got.Err != "" {
		d.failf("gc: %s", got.Err)
	}
	marks := map[string]string{}
	for _, b := range d.forgetContent() {
		if len(gone) == 0 && b.Inline || isGone[b.Digest] {
			marks[markRE.FindString(string(b.Data[:min(60, len(b.Data))]))] = "content"
		}
	}
	if got.GC.Waiting != "" {
		return
	}
	for k := range d.m.freed {
		marks[k] = "body"
	}
	for k := range d.m.released() {
		marks[k] = "claim"
	}
	d.scan(marks)
}

// forgetContent removes content that no entry names, and returns it: a
// collection may remove it, so no later entry names it.
func (d *driver) forgetContent() (out []wBlob) {
	named := d.m.named()
	d.blobs = slices.DeleteFunc(d.blobs, func(b wBlob) bool {
		if !named[b.Digest] {
			out = append(out, b)
		}
		return !named[b.Digest]
	})
	return out
}

// released returns the marks of claims that ended with their transaction.
func (m *model) released() map[string]bool {
	out := map[string]bool{}
	for txn, list := range m.res {
		for _, c := range list {
			if k := markRE.FindString(c); k != "" && m.txns[txn].ended {
				out[k] = true
			}
		}
	}
	for c := range m.claims {
		delete(out, markRE.FindString(c))
	}
	return out
}

// scan looks for marks in a copy of all files, and for the salts of erased
// entries in those of the database. Content up to 64 KiB may be left in the
// database: docs/explanation/known-defects.md.
func (d *driver) scan(marks map[string]string) {
	d.st.scans++
	look := filepath.Join(d.tmp, "scan")
	d.copyTo(look)
	defer func() { _ = os.RemoveAll(look) }() // a temporary folder
	err := filepath.WalkDir(look, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		inDB := strings.HasPrefix(filepath.Base(p), "journal.db")
		for _, m := range markRE.FindAllIndex(data, -1) {
			d.st.marks++
			switch what := marks[string(data[m[0]:m[1]])]; {
			case what == "content" && inDB:
				d.st.left++
			case what != "":
				d.failf("after a collection: %s of erased %s in %s at %d", data[m[0]:m[1]], what, filepath.Base(p), m[0])
			}
		}
		for i := 0; inDB && i+16 <= len(data); i++ {
			if d.m.salts[string(data[i:i+16])] {
				d.failf("after a collection: the salt of an erased entry in %s at %d", filepath.Base(p), i)
			}
		}
		return err
	})
	if err != nil {
		d.failf("scan: %v", err)
	}
}
