package record

import "github.com/remit-dev/remit/internal/canon"

// maxProse bounds each text for people in a record, in bytes.
const maxProse = 16 << 10

// textBody is a body with texts for people. These come from any source, such as
// errors of tools and names of files, and must not prevent writing the record.
// Bytes that are not UTF-8 are written as %XX, and long texts are cut.
type textBody interface{ prose() []*string }

func (b *Prompted) prose() []*string { return []*string{&b.Text} }
func (b *Invalid) prose() []*string  { return []*string{&b.Why} }
func (b *Denied) prose() []*string   { return []*string{&b.Why} }
func (b *Answered) prose() []*string { return []*string{&b.By, &b.Why} }
func (b *Failed) prose() []*string   { return []*string{&b.Why} }
func (b *Unknown) prose() []*string  { return []*string{&b.Why} }
func (b *Decided) prose() []*string  { return []*string{&b.By, &b.Why} }
func (b *Dropped) prose() []*string  { return []*string{&b.By} }
func (b *Feedback) prose() []*string { return []*string{&b.By, &b.Note} }
func (b *Aborting) prose() []*string { return []*string{&b.Why} }

func (b *CommitDecided) prose() []*string {
	if b.Answer == nil {
		return nil
	}
	return b.Answer.prose()
}

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
		if clean := canon.Printable(*text, maxProse); clean != *text { // other goroutines may read the text, so write it only if it changes
			*text = clean
		}
	}
}
