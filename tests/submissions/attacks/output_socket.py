# property: a socket at the output path is not a workbook
# verdict: SV
import socket
end = socket.socket(socket.AF_UNIX)
end.bind("/mnt/data/output/1_1_output.xlsx")
