/* Two nodes with sparse domains, a range for RAM that may be plugged in later, and an entry that is switched off. */
[0004] Signature : "SRAT"
[0004] Table Length : 00000000
[0001] Revision : 03
[0001] Checksum : 00
[0006] Oem ID : "ASHLAR"
[0008] Oem Table ID : "FIXTURE "
[0004] Oem Revision : 00000001
[0004] Asl Compiler ID : "INTL"
[0004] Asl Compiler Revision : 20200925

[0004] Table Revision : 00000001
[0008] Reserved : 0000000000000000

[0001] Subtable Type : 02
[0001] Length : 18
[0002] Reserved1 : 0000
[0004] Proximity Domain : 00000003
[0004] Apic ID : 00000000
[0004] Flags (decoded below) : 00000001
                          Enabled : 1
[0004] Clock Domain : 00000000
[0004] Reserved2 : 00000000

[0001] Subtable Type : 02
[0001] Length : 18
[0002] Reserved1 : 0000
[0004] Proximity Domain : 00000028
[0004] Apic ID : 00000001
[0004] Flags (decoded below) : 00000001
                          Enabled : 1
[0004] Clock Domain : 00000000
[0004] Reserved2 : 00000000

[0001] Subtable Type : 02
[0001] Length : 18
[0002] Reserved1 : 0000
[0004] Proximity Domain : 00000028
[0004] Apic ID : 00000006
[0004] Flags (decoded below) : 00000001
                          Enabled : 1
[0004] Clock Domain : 00000000
[0004] Reserved2 : 00000000

[0001] Subtable Type : 02
[0001] Length : 18
[0002] Reserved1 : 0000
[0004] Proximity Domain : 00000063
[0004] Apic ID : 00000007
[0004] Flags (decoded below) : 00000000
                          Enabled : 0
[0004] Clock Domain : 00000000
[0004] Reserved2 : 00000000

[0001] Subtable Type : 01
[0001] Length : 28
[0004] Proximity Domain : 00000003
[0002] Reserved1 : 0000
[0008] Base Address : 0000000000000000
[0008] Address Length : 0000000010000000
[0004] Reserved2 : 00000000
[0004] Flags (decoded below) : 00000001
                          Enabled : 1
                    Hot Pluggable : 0
                     Non-Volatile : 0
[0008] Reserved3 : 0000000000000000

[0001] Subtable Type : 01
[0001] Length : 28
[0004] Proximity Domain : 00000028
[0002] Reserved1 : 0000
[0008] Base Address : 0000000010000000
[0008] Address Length : 0000000070000000
[0004] Reserved2 : 00000000
[0004] Flags (decoded below) : 00000001
                          Enabled : 1
                    Hot Pluggable : 0
                     Non-Volatile : 0
[0008] Reserved3 : 0000000000000000

[0001] Subtable Type : 01
[0001] Length : 28
[0004] Proximity Domain : 00000028
[0002] Reserved1 : 0000
[0008] Base Address : 0000000100000000
[0008] Address Length : 0000001000000000
[0004] Reserved2 : 00000000
[0004] Flags (decoded below) : 00000003
                          Enabled : 1
                    Hot Pluggable : 1
                     Non-Volatile : 0
[0008] Reserved3 : 0000000000000000

[0001] Subtable Type : 01
[0001] Length : 28
[0004] Proximity Domain : 00000063
[0002] Reserved1 : 0000
[0008] Base Address : 0000008000000000
[0008] Address Length : 0000000000001000
[0004] Reserved2 : 00000000
[0004] Flags (decoded below) : 00000000
                          Enabled : 0
                    Hot Pluggable : 0
                     Non-Volatile : 0
[0008] Reserved3 : 0000000000000000

