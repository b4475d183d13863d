# What `make debug` prepares: the guest stands before its first instruction, symbols are loaded.
# Hardware breakpoints, because the loader has not put the code in memory yet.
set confirm off
set pagination off
set print pretty on
set disassemble-next-line auto

define console
	shell tail -n 40 "$ASHLAR_CONSOLE"
end
document console
The end of the guest's console.
end

hbreak kernel_main
hbreak panic
continue
