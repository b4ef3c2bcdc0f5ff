# What a person looks at before the commit is not asked about before it.
package remit.provenance

later if input.call.effect_class == "reversible"
