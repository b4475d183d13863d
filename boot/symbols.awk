# Turns `nm -n` of a linked kernel into the symbol table that backtraces read (arch/x86_64/cpu/symbols.c).
#
# Input: lines "address type name", sorted by address. Only text symbols are kept: the first name of each address, but
# none of ashlar.h's that is a second one.
# Output: assembly for section .rodata.symbols:
#
#	__symbol_count         .long  n
#	__symbol_addresses     .quad  n times, ascending
#	__symbol_name_offsets  .long  n times, into __symbol_names
#	__symbol_names         zero-terminated strings
#
# With no input the table is empty: the first of the two links uses that. Section .rodata stands after the text, so
# filling the table moves no function; the Makefile checks that.

function is_text(type)
{
	return type ~ /^[tTwW]$/
}

# The interface's second names (ashlar.h) give way to the kernel's own.
is_text($2) && $1 == last && name[n - 1] ~ /^ashlar_/ {
	name[n - 1] = $3
}

is_text($2) && $1 != last {
	last = $1
	address[n] = $1
	name[n] = $3
	n++
}

END {
	print "\t.section .rodata.symbols, \"a\", @progbits"
	print "\t.globl __symbol_count, __symbol_addresses, __symbol_name_offsets, __symbol_names"
	print "\t.balign 8\n__symbol_addresses:"
	for (i = 0; i < n; i++)
		print "\t.quad 0x" address[i]
	print "__symbol_name_offsets:"
	for (i = 0; i < n; i++) {
		print "\t.long " offset
		offset += length(name[i]) + 1
	}
	if (!n)
		print "\t.long 0"
	print "__symbol_count:\n\t.long " n + 0
	print "__symbol_names:"
	for (i = 0; i < n; i++)
		print "\t.asciz \"" name[i] "\""
	print "\t.byte 0"
	print "\t.section .note.GNU-stack, \"\", @progbits"
}
BEGIN { n = 0; offset = 0; last = "" }
