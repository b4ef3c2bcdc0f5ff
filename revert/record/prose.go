package record

import "github.com/remit-dev/remit/internal/canon"

// maxProse bounds what a record says for people.
const maxProse = 16 << 10

// textBody is a body with texts for people. They come from anywhere, errors of
// tools and names of files among them, and must not keep a record from being
// written: bytes that are no UTF-8 are written as %XX, and what is too long is cut.
type textBody interface{ prose() []*string }

func (b *Invalid) prose() []*string  { return []*string{&b.Why} }
func (b *Denied) prose() []*string   { return []*string{&b.Why} }
func (b *Answered) prose() []*string { return []*string{&b.By, &b.Why} }
func (b *Failed) prose() []*string   { return []*string{&b.Why} }
func (b *Unknown) prose() []*string  { return []*string{&b.Why} }
func (b *Decided) prose() []*string  { return []*string{&b.By, &b.Why} }
func (b *Dropped) prose() []*string  { return []*string{&b.By} }
func (b *Feedback) prose() []*string { return []*string{&b.By, &b.Note} }
func (b *Aborting) prose() []*string { return []*string{&b.Why} }

func (b *Verified) prose() []*string {
	all := []*string{&b.Why}
	for i := range b.Findings {
		all = append(all, &b.Findings[i])
	}
	return all
}

func (b *Reverting) prose() []*string {
	all := []*string{&b.By}
	for i := range b.Steps {
		all = append(all, &b.Steps[i].Why)
	}
	return all
}

func (b *Reverted) prose() []*string {
	var all []*string
	for i := range b.Results {
		all = append(all, &b.Results[i].Why)
	}
	return all
}

func readable(b Body) {
	p, ok := b.(textBody)
	if !ok {
		return
	}
	for _, text := range p.prose() {
		if clean := canon.Printable(*text, maxProse); clean != *text { // what is read by others is not written without need
			*text = clean
		}
	}
}
