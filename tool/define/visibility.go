package define

import (
	"slices"
	"strconv"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/provenance"
)

// audience is which sessions see the tool, beside the surfaces of its visibility. Of a tool that there is, a file can only ask
// for more.
func (f *file) audience() {
	n := f.root.Get("audience")
	if n == nil || !n.Closed("capabilities", "confidence") {
		return
	}
	for _, c := range n.Get("capabilities").Texts() {
		if !slices.Contains(f.spec.Capabilities, c) {
			f.spec.Capabilities = append(f.spec.Capabilities, c)
		}
	}
	if c := n.Get("confidence"); c != nil {
		f.confidence(c)
	}
}

func (f *file) confidence(n *jsonfile.Node) {
	least, err := strconv.Atoi(n.Value.Text())
	if n.Value.Kind() != canon.Number || err != nil || least < 0 || least > 1000 {
		n.Refuse("a confidence is a whole number from 0 to 1000, in thousandths")
		return
	}
	if base, narrows := f.base(); narrows && least < base.Spec().MinProviderTrust {
		n.Refuse("it is less than what the implementation wants, which is %d", base.Spec().MinProviderTrust)
		return
	}
	f.spec.MinProviderTrust = least
}

// content is what is said of all that the tool returns. What a tool that there is says of itself cannot be made milder.
func (f *file) content() {
	n := f.root.Get("content")
	if n == nil || !n.Closed("mediaType", "trust", "confidentiality", "fields") {
		return
	}
	c := provenance.Content{
		MediaType: n.Get("mediaType").Text(), Trust: provenance.Trust(n.Get("trust").Text()),
		Confidentiality: provenance.Confidentiality(n.Get("confidentiality").Text()),
	}
	if err := c.Check(); err != nil {
		n.Refuse("%v", err)
		return
	}
	if base, narrows := f.base(); narrows && base.Spec().OutputContent != nil {
		for _, label := range base.Spec().OutputContent.Labels() {
			if !slices.Contains(c.Labels(), label) {
				n.Refuse("it is milder than what the implementation says of itself, which is %s", label)
			}
		}
	}
	c.Fields = f.fields(n.Get("fields"))
	f.spec.OutputContent = &c
}
