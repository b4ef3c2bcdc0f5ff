package record

import "github.com/remit-dev/remit/revert/effect"

// Blobs lists the content that the body names.
func (r Record) Blobs() (refs []effect.BlobRef) {
	switch b := r.Body.(type) {
	case *Session:
		if b.GrantContent != nil {
			refs = []effect.BlobRef{*b.GrantContent}
		}
	case *Changed:
		refs = b.Blobs
	case *State:
		if b.Content != nil {
			refs = []effect.BlobRef{*b.Content}
		}
	case *Reverting:
		for _, s := range b.Steps {
			refs = append(refs, s.Change.Blobs...)
		}
	}
	return refs
}
