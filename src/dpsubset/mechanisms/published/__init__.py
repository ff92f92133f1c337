"""Mechanisms kept for comparison, and to reproduce published results.

They are in the same table as the mechanisms in the parent folder, have proofs and pass the same
tests, audits included. For a new analysis, take a mechanism of the parent folder.

- top-r: Behdin, Prastakos and Mazumder 2024; Prastakos, Behdin and Mazumder 2025
- mistakes: Prastakos, Behdin and Mazumder 2025
- metropolis: Roy, Wang and Tewari 2024
- sample-aggregate: Kifer, Smith and Thakurta 2012; Table 1 of Roy, Wang and Tewari 2024
- stability: Thakurta and Smith 2013; Table 1 of Roy, Wang and Tewari 2024
- peeling, hard-thresholding: Cai, Wang and Zhang 2021
- frank-wolfe: Talwar, Thakurta and Zhang 2015
"""
