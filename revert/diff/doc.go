// Package diff shows the effects of a transaction or a call on resources: the
// versions before and after, and for text the lines that differ.
//
// It reads the journal and the resources, and writes neither. The journal
// stores the pre-image for the revert. The post-image is read from the resource
// if it is unchanged, or from a later change that stored it. Otherwise the diff
// says that the content is gone.
package diff
