/* Firmware as careless as it comes: CPUs that are here (0, 1) and one that is not (6), the same one twice in two ways, empty
 * sockets with ID 0xFF, hot-pluggable slots that are empty, an NMI on every CPU said in two ways. */
[0004] Signature : "APIC"
[0004] Table Length : 00000000
[0001] Revision : 05
[0001] Checksum : 00
[0006] Oem ID : "ASHLAR"
[0008] Oem Table ID : "FIXTURE "
[0004] Oem Revision : 00000001
[0004] Asl Compiler ID : "INTL"
[0004] Asl Compiler Revision : 20200925

[0004] Local Apic Address : FEE00000
[0004] Flags (decoded below) : 00000001
              PC-AT Compatibility : 1

[0001] Subtable Type : 00
[0001] Length : 08
[0001] Processor ID : 00
[0001] Local Apic ID : 00
[0004] Flags (decoded below) : 00000001
                Processor Enabled : 1
           Runtime Online Capable : 0

[0001] Subtable Type : 00
[0001] Length : 08
[0001] Processor ID : 01
[0001] Local Apic ID : 01
[0004] Flags (decoded below) : 00000001
                Processor Enabled : 1
           Runtime Online Capable : 0

[0001] Subtable Type : 00
[0001] Length : 08
[0001] Processor ID : 02
[0001] Local Apic ID : 06
[0004] Flags (decoded below) : 00000001
                Processor Enabled : 1
           Runtime Online Capable : 0

[0001] Subtable Type : 00
[0001] Length : 08
[0001] Processor ID : 03
[0001] Local Apic ID : FF
[0004] Flags (decoded below) : 00000001
                Processor Enabled : 1
           Runtime Online Capable : 0

[0001] Subtable Type : 00
[0001] Length : 08
[0001] Processor ID : 04
[0001] Local Apic ID : 02
[0004] Flags (decoded below) : 00000000
                Processor Enabled : 0
           Runtime Online Capable : 0

[0001] Subtable Type : 00
[0001] Length : 08
[0001] Processor ID : 05
[0001] Local Apic ID : 03
[0004] Flags (decoded below) : 00000002
                Processor Enabled : 0
           Runtime Online Capable : 1

[0001] Subtable Type : 09
[0001] Length : 10
[0002] Reserved : 0000
[0004] Processor x2Apic ID : 00000001
[0004] Flags (decoded below) : 00000001
                Processor Enabled : 1
[0004] Processor UID : 00000009

[0001] Subtable Type : 09
[0001] Length : 10
[0002] Reserved : 0000
[0004] Processor x2Apic ID : FFFFFFFF
[0004] Flags (decoded below) : 00000001
                Processor Enabled : 1
[0004] Processor UID : 0000000A

[0001] Subtable Type : 09
[0001] Length : 10
[0002] Reserved : 0000
[0004] Processor x2Apic ID : 0000012C
[0004] Flags (decoded below) : 00000000
                Processor Enabled : 0
[0004] Processor UID : 0000000B

[0001] Subtable Type : 01
[0001] Length : 0C
[0001] I/O Apic ID : 00
[0001] Reserved : 00
[0004] Address : FEC00000
[0004] Interrupt : 00000000

[0001] Subtable Type : 04
[0001] Length : 06
[0001] Processor ID : FF
[0002] Flags (decoded below) : 0005
                         Polarity : 1
                     Trigger Mode : 1
[0001] Interrupt Input LINT : 01

[0001] Subtable Type : 05
[0001] Length : 0C
[0002] Reserved : 0000
[0008] APIC Address : 00000000FEE00000

[0001] Subtable Type : 0A
[0001] Length : 0C
[0002] Flags (decoded below) : 0005
                         Polarity : 1
                     Trigger Mode : 1
[0004] Processor UID : FFFFFFFF
[0001] Interrupt Input LINT : 01
[0003] Reserved : 000000
